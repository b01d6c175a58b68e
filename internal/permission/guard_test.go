package permission

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestForWrite(t *testing.T) {
	tests := []struct {
		name   string
		level  Level
		path   string // below the box
		abs    string // below the box; "" = refused
		rel    string
		denied string // part of the message of a *Denied
		err    error
		asked  bool
		bare   bool // no key file, no session elsewhere
	}{
		{name: "file inside", path: "ws/sub/old.txt", abs: "ws/sub/old.txt", rel: "old.txt"},
		{name: "new file", path: "ws/new.txt", abs: "ws/new.txt", rel: "new.txt"},
		{name: "new folders", path: "ws/a/b/c.txt", abs: "ws/a/b/c.txt", rel: "a/b/c.txt", bare: true},
		{name: "relative link inside", path: "ws/rel/old.txt", abs: "ws/sub/old.txt", rel: "old.txt"},
		{name: "absolute link inside", path: "ws/abs/old.txt", abs: "ws/sub/old.txt", rel: "old.txt"},
		{name: "link as last component", path: "ws/file-link", abs: "ws/sub/old.txt", rel: "old.txt"},
		{name: "dots that stay inside", path: "ws/sub/../sub/old.txt", abs: "ws/sub/old.txt", rel: "old.txt"},
		{name: "dots after a link go where the link leads", path: "ws/out/../ws/sub/old.txt", abs: "ws/sub/old.txt", rel: "old.txt"},
		{name: "dangling link", path: "ws/dangling", err: errors.New("does not exist")},
		{name: "folder through a dangling link", path: "ws/dangling/x.txt", err: errors.New("does not exist")},
		{name: "link in a circle", path: "ws/loop", err: syscall.ELOOP},
		{name: "a folder", path: "ws/sub", err: syscall.EISDIR},
		{name: "below a file", path: "ws/sub/old.txt/x", err: syscall.ENOTDIR},
		{name: "dots after what is missing", path: "ws/nothing/../x", err: fs.ErrNotExist},
		{name: "outside", path: "outside/o.txt", denied: "not today", asked: true},
		{name: "outside by dots", path: "ws/../outside/o.txt", denied: "not today", asked: true},
		{name: "outside by link", path: "ws/out/new.txt", denied: "not today", asked: true},
		{name: "a name that begins like the workspace", path: "ws2/x.txt", denied: "not today", asked: true},
		{name: "outside, read-only", level: ReadOnly, path: "outside/o.txt", denied: "read-only"},
		{name: "inside, read-only", level: ReadOnly, path: "ws/new.txt", denied: "read-only"},
		{name: "outside, full access", level: FullAccess, path: "outside/o.txt", abs: "outside/o.txt", rel: "o.txt"},
		{name: "new folders outside, full access", level: FullAccess, path: "outside/x/y/z", abs: "outside/x/y/z", rel: "x/y/z", bare: true},
		{name: "home", path: "home/AGENTS.md", denied: "deepseek's own folder"},
		{name: "home, full access", level: FullAccess, path: "home/AGENTS.md", denied: "deepseek's own folder"},
		{name: "home by link", path: "ws/home/new/x", denied: "deepseek's own folder"},
		{name: "configuration by hard link", level: FullAccess, path: "ws/hard.yaml", denied: "the user's configuration"},
		{name: "socket folder", level: FullAccess, path: "sock/x", denied: "sockets"},
		{name: "running session", path: "ws/s/20260101-000000-aaaaa.jsonl", denied: "the running session"},
		{name: "spill of the running session", level: FullAccess, path: "ws/s/20260101-000000-aaaaa.spill/x", denied: "the running session"},
		{name: "another file beside it", path: "ws/s/other.jsonl", abs: "ws/s/other.jsonl", rel: "other.jsonl"},
		{name: "key file", level: FullAccess, path: "outside/key", denied: "API key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			b.link("sub", b.ws+"/rel")
			b.link(b.ws+"/sub", b.ws+"/abs")
			b.link("sub/old.txt", b.ws+"/file-link")
			b.link("missing", b.ws+"/dangling")
			b.link("loop", b.ws+"/loop")
			b.link(b.outside, b.ws+"/out")
			b.link(b.home, b.ws+"/home")
			b.mkdir(b.ws + "/s")
			if err := os.Link(b.home+"/config.yaml", b.ws+"/hard.yaml"); err != nil {
				t.Fatal(err)
			}
			who := &person{say: no}
			p := b.policy(func(c *Config) {
				c.Approver = who
				if !tt.bare {
					c.SessionPaths = []string{b.ws + "/s/20260101-000000-aaaaa.jsonl"}
					c.KeyFile = b.outside + "/key"
				}
				if tt.level != "" {
					c.Level = tt.level
				}
			})
			a, err := p.ForWrite(t.Context(), b.dir+"/"+tt.path, AskWrite{Tool: "write", Detail: "+x"})
			if err == nil {
				defer a.Root.Close() //nolint:errcheck // a folder opened for reading
			}
			switch denied := (*Denied)(nil); {
			case tt.abs != "":
				if err != nil || a.Abs != b.dir+"/"+tt.abs || a.Rel != tt.rel {
					t.Errorf("got %q in %q, %v", a.Rel, a.Abs, err)
				}
			case tt.denied != "":
				if !errors.As(err, &denied) || !strings.Contains(denied.Message, tt.denied) {
					t.Errorf("error %v, want a denial with %q", err, tt.denied)
				}
			case err == nil || !errors.Is(err, tt.err) && !strings.Contains(err.Error(), tt.err.Error()):
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if got := len(who.asked) > 0; got != tt.asked {
				t.Errorf("asked %v, want %v", got, tt.asked)
			}
		})
	}
}

func TestForWriteOutsideWithAYes(t *testing.T) {
	b := newBox(t)
	who := &person{say: yes}
	p := b.policy(func(c *Config) { c.Approver = who })
	a, err := p.ForWrite(t.Context(), b.outside+"/o.txt", AskWrite{Tool: "edit", CallID: "c1", Title: "change o.txt", Detail: "-o\n+p"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Root.WriteFile(a.Rel, []byte("p\n"), 0o644); err != nil {
		t.Error(err)
	}
	if err := a.Root.Close(); err != nil {
		t.Error(err)
	}
	r := who.asked[0]
	if r.Tool != "edit" || r.CallID != "c1" || r.Detail != "-o\n+p" || r.Prefix != "" || !strings.Contains(r.Reason, "outside the workspace") {
		t.Errorf("asked %+v", r)
	}
}

func TestForWriteWithNobodyToAskIsDenied(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"nobody could be asked": nil,
		"--approve never":       func(c *Config) { c.Approve, c.Approver = ApproveNever, &person{say: yes} },
	} {
		b := newBox(t)
		_, err := b.policy(change).ForWrite(t.Context(), b.outside+"/o.txt", AskWrite{})
		var denied *Denied
		if !errors.As(err, &denied) || !strings.Contains(denied.Message, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForWriteEndsWithItsContext(t *testing.T) {
	b := newBox(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := b.policy(func(c *Config) {
		c.Approver = &person{say: func(Request) Decision { cancel(); return Decision{} }}
	})
	if _, err := p.ForWrite(ctx, b.outside+"/o.txt", AskWrite{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestForWriteRefusesWhatChangedDuringTheApproval(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.dir + "/other")
	b.link(b.outside, b.ws+"/out")
	p := b.policy(func(c *Config) {
		c.Approver = &person{say: func(Request) Decision {
			if err := os.Remove(b.ws + "/out"); err != nil {
				t.Error(err)
			}
			b.link(b.dir+"/other", b.ws+"/out")
			return Decision{Allowed: true}
		}}
	})
	if _, err := p.ForWrite(t.Context(), b.ws+"/out/x", AskWrite{}); !errors.Is(err, errMoved) {
		t.Errorf("error %v", err)
	}
}

// A command that runs beside may swap a folder for a link at any moment. What
// is written through the handle never arrives where the link leads.
func TestForWriteRacesASwappedLink(t *testing.T) {
	for _, target := range []string{"outside", "ws/.ds"} {
		t.Run(target, func(t *testing.T) {
			b := newBox(t)
			b.mkdir(b.ws + "/.ds")
			b.mkdir(b.ws + "/real")
			p := b.policy(func(c *Config) { c.Home = b.ws + "/.ds" })
			stop := make(chan struct{})
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_ = os.Rename(b.ws+"/real", b.ws+"/aside")
					_ = os.Symlink(b.dir+"/"+target, b.ws+"/real")
					_ = os.Remove(b.ws + "/real")
					_ = os.Rename(b.ws+"/aside", b.ws+"/real")
				}
			})
			wrote := 0
			begun := time.Now()
			enough := func() bool {
				took := time.Since(begun)
				return took > time.Minute || took > 300*time.Millisecond && wrote > 0
			}
			for !enough() {
				a, err := p.ForWrite(t.Context(), b.ws+"/real/x.txt", AskWrite{})
				if err != nil {
					continue
				}
				if err := a.Root.WriteFile(a.Rel, nil, 0o644); err == nil {
					wrote++
				}
				if err := a.Root.Close(); err != nil {
					t.Error(err)
				}
			}
			close(stop)
			swapper.Wait()
			if _, err := os.Lstat(b.dir + "/" + target + "/x.txt"); err == nil {
				t.Error("the write went through the link")
			}
			if wrote == 0 {
				t.Error("no write at all: the race was not run")
			}
		})
	}
}

func TestForWriteMakesFoldersItselfWhereALinkCouldLeadHome(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.ws + "/.ds")
	p := b.policy(func(c *Config) { c.Home = b.ws + "/.ds" })
	a, err := p.ForWrite(t.Context(), b.ws+"/a/b/c.txt", AskWrite{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Root.Close() //nolint:errcheck // a folder opened for reading
	if fi, err := os.Stat(b.ws + "/a/b"); a.Rel != "c.txt" || err != nil || !fi.IsDir() {
		t.Errorf("rel %q, %v", a.Rel, err)
	}
}

func TestForRead(t *testing.T) {
	b := newBox(t)
	b.write(b.outside+"/key", "k")
	b.write(b.ws+"/mine.yaml", "model: y\n")
	b.link(b.outside+"/key", b.ws+"/link")
	if err := os.Link(b.home+"/config.yaml", b.ws+"/hard"); err != nil {
		t.Fatal(err)
	}
	p := b.policy(func(c *Config) {
		c.KeyFile = b.outside + "/key"
		c.ConfigFiles = []string{b.ws + "/mine.yaml"}
	})
	for path, ok := range map[string]bool{
		b.outside + "/key":       false,
		b.ws + "/link":           false,
		b.ws + "/hard":           false,
		b.ws + "/mine.yaml":      false,
		b.home + "/config.yaml":  false,
		b.ws + "/sub/../link":    false,
		b.ws + "/sub/old.txt":    true,
		b.outside + "/o.txt":     true,
		b.home + "/sessions":     true,
		b.ws + "/missing/at/all": true,
	} {
		if err := p.ForRead(path); (err == nil) != ok {
			t.Errorf("ForRead(%s) = %v", path, err)
		}
	}
}

func BenchmarkForRead(b *testing.B) {
	dir := b.TempDir()
	p, err := New(Config{Level: ReadOnly, Approve: ApproveAsk, Cwd: dir, Home: dir + "/home", KeyFile: dir + "/key"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := p.ForRead(dir); err != nil {
			b.Fatal(err)
		}
	}
}

// A path of very many parts is refused at once, not looked up part by part.
func TestResolveRefusesPathsThatNoSystemTakes(t *testing.T) {
	b := newBox(t)
	for _, path := range []string{b.ws + strings.Repeat("/x", 60_000), b.ws + strings.Repeat("/.", 60_000), "/" + strings.Repeat("x", unix.PathMax)} {
		p := b.policy(nil)
		made := testing.AllocsPerRun(1, func() {
			_, err := p.ForWrite(t.Context(), path, AskWrite{})
			if !errors.Is(err, syscall.ENAMETOOLONG) || len(err.Error()) > 300 {
				t.Errorf("%.200v", err)
			}
		})
		if made > 1000 {
			t.Errorf("%v allocations", made)
		}
	}
}
