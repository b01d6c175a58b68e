package permission

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWorkspace(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.ws + "/sub/deep")
	b.mkdir(b.dir + "/user/.git")
	b.mkdir(b.dir + "/user/project")
	b.mkdir(b.dir + "/linked/in")
	b.write(b.dir+"/linked/.git", "gitdir: /nowhere\n")
	b.link(b.ws+"/sub", b.dir+"/way")
	b.mkdir(b.dir + "/trick")
	b.link(b.ws+"/.git", b.dir+"/trick/.git")
	for cwd, want := range map[string]string{
		b.ws:                       b.ws,
		b.ws + "/sub/deep":         b.ws,
		b.dir + "/way":             b.ws,
		b.outside:                  b.outside,
		b.dir + "/user/project":    b.dir + "/user/project",
		b.dir + "/user":            b.dir + "/user",
		b.dir + "/linked/in":       b.dir + "/linked",
		b.dir + "/trick":           b.dir + "/trick",
		b.ws + "/.git":             b.ws,
		b.outside + "/../ws/./sub": b.ws,
	} {
		if got, err := Workspace(cwd, b.dir+"/user"); got != want || err != nil {
			t.Errorf("Workspace(%s) = %s, %v, want %s", cwd, got, err, want)
		}
	}
	for _, cwd := range []string{b.dir + "/missing", b.outside + "/o.txt"} {
		if _, err := Workspace(cwd, ""); err == nil {
			t.Errorf("Workspace(%s): no error", cwd)
		}
	}
}

func TestNewRefusesUnknownWords(t *testing.T) {
	b := newBox(t)
	for _, change := range []func(*Config){
		func(c *Config) { c.Level = "root" },
		func(c *Config) { c.Approve = "always" },
		func(c *Config) { c.Cwd = b.dir + "/missing" },
	} {
		c := b.config()
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestCommand(t *testing.T) {
	tests := []struct {
		name        string
		change      func(*box, *Config)
		unsupported bool
		command     string
		reason      string // part of what is asked; "" = not asked
		sandboxed   bool
	}{
		{name: "workspace-write", sandboxed: true},
		{name: "full access", change: func(_ *box, c *Config) { c.Level = FullAccess }},
		{name: "read-only", change: func(_ *box, c *Config) { c.Level = ReadOnly }, reason: "read-only", sandboxed: true},
		{name: "no kernel support", unsupported: true, reason: "an old kernel"},
		{name: "no kernel support, full access", change: func(_ *box, c *Config) { c.Level = FullAccess }, unsupported: true},
		{name: "home in the workspace", change: func(b *box, c *Config) { c.Home = b.ws + "/.ds" }, reason: "deepseek's own folder", sandboxed: true},
		{name: "workspace in home", change: func(b *box, c *Config) { c.Home = b.dir }, reason: "deepseek's own folder", sandboxed: true},
		{name: "sockets in the workspace", change: func(b *box, c *Config) { c.SocketDir = b.ws + "/s" }, reason: "sockets", sandboxed: true},
		{name: "configuration in the workspace", change: func(b *box, c *Config) { c.ConfigFiles = []string{b.ws + "/c.yaml"} }, reason: "configuration", sandboxed: true},
		{name: "session in the workspace", change: func(b *box, c *Config) { c.SessionPaths = []string{b.ws + "/s.jsonl"} }, reason: "running session", sandboxed: true},
		{name: "linked work tree, commit", change: func(b *box, _ *Config) { b.linkWorktree() }, command: "make && git -C . commit -m x", reason: "linked work tree", sandboxed: true},
		{name: "linked work tree, status", change: func(b *box, _ *Config) { b.linkWorktree() }, command: "git status", sandboxed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			who := &person{say: yes}
			p := b.policy(func(c *Config) {
				c.Approver = who
				if tt.change != nil {
					tt.change(b, c)
				}
			})
			p.supported = func() (bool, string) { return !tt.unsupported, "an old kernel" }
			if tt.command == "" {
				tt.command = "make all"
			}
			tmp := t.TempDir()
			l, err := p.Command(t.Context(), CommandRequest{CallID: "c1", Command: tt.command, Dir: b.ws, TempDir: tmp})
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Sandbox != nil; got != tt.sandboxed {
				t.Errorf("sandboxed %v, want %v", got, tt.sandboxed)
			}
			if tt.reason == "" {
				if len(who.asked) > 0 {
					t.Errorf("asked %+v", who.asked)
				}
				return
			}
			if len(who.asked) != 1 || !strings.Contains(who.asked[0].Reason, tt.reason) || who.asked[0].Detail != tt.command {
				t.Fatalf("asked %+v", who.asked)
			}
			who.say = no
			var denied *Denied
			if _, err := p.Command(t.Context(), CommandRequest{Command: tt.command, TempDir: tmp}); !errors.As(err, &denied) {
				t.Errorf("after a no: %v", err)
			}
			if _, err := p.For(nil).Command(t.Context(), CommandRequest{Command: tt.command, TempDir: tmp}); !errors.As(err, &denied) {
				t.Errorf("with nobody to ask: %v", err)
			}
		})
	}
}

func TestYesForTheSessionCoversThePrefix(t *testing.T) {
	b := newBox(t)
	who := &person{say: func(Request) Decision { return Decision{Allowed: true, ForSession: true} }}
	p := b.policy(func(c *Config) { c.Approver, c.Level = who, ReadOnly })
	run := func(p *Policy, command string) {
		t.Helper()
		if _, err := p.Command(t.Context(), CommandRequest{Command: command, TempDir: b.outside}); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	run(p, "go test ./...")
	if who.asked[0].Prefix != "go test" {
		t.Errorf("offered %q", who.asked[0].Prefix)
	}
	who.say = no
	run(p, "go test -run X ./a")
	run(p.For(nil), "go test")
	for _, command := range []string{"go build", "go test; rm x", "go test $(rm x)", "go test > x", "X=1 go test", "go test &", "! go test", "go", "gotest"} {
		if _, err := p.Command(t.Context(), CommandRequest{Command: command, TempDir: b.outside}); err == nil {
			t.Errorf("%s: not asked", command)
		}
	}
}

func TestOffer(t *testing.T) {
	for command, want := range map[string]string{
		"git status":               "git status",
		"git commit -m 'a b'":      "git commit",
		"npm run build":            "npm run",
		"ls":                       "ls",
		"ls -la":                   "ls -la",
		" rm *.o ":                 "rm *.o",
		"git -C x push":            "git -C x push",
		"python3 x.py":             "python3 x.py",
		"sudo reboot":              "sudo reboot",
		"bash script":              "bash script",
		"./configure all":          "./configure all",
		"cat a | sort":             "",
		"a && b":                   "",
		"a; b":                     "",
		"echo $(date)":             "",
		"echo `date`":              "",
		"echo $HOME":               "",
		`echo "$HOME"`:             "",
		"echo hi > f":              "",
		"A=1 make":                 "",
		"make &":                   "",
		"! make":                   "",
		"(make)":                   "",
		"for i in 1; do x; done":   "",
		"echo 'unfinished":         "",
		"":                         "",
		"cat <(ls)":                "",
		"a\nb":                     "",
		"echo $'x'":                "",
		"f() { rm -rf x; }; f all": "",
	} {
		if got := parse(command).offer().text; got != want {
			t.Errorf("offer(%q) = %q, want %q", command, got, want)
		}
	}
}

func TestChangesGit(t *testing.T) {
	for command, want := range map[string]bool{
		"git add -A && git commit -m x":       true,
		"git -c user.name=x commit":           true,
		"git --no-pager commit":               true,
		"/usr/bin/git push":                   true,
		"x=$(git stash)":                      true,
		"git status; git diff; git log -5":    false,
		"git -C commit status":                false,
		"echo git commit":                     false,
		"grep 'git commit' f":                 false,
		"git":                                 false,
		"if true; then git checkout -b x; fi": true,
	} {
		if got := parse(command).changesGit; got != want {
			t.Errorf("changesGit(%q) = %v", command, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("git status | cat && $(x) <(y) 'z' \"${a:=b}\"")
	f.Add("case x in a) ;; esac; ((1+2)); [[ a =~ b ]]; cat <<E\nx\nE")
	f.Fuzz(func(t *testing.T, command string) {
		line := parse(command)
		if g := line.offer(); g.text != "" && !g.covers(line) {
			t.Errorf("%q is not covered by its own offer %+v", command, g)
		}
	})
}

// sandboxed runs a command the way that the policy says and returns what it printed.
func (b *box) sandboxed(p *Policy, command string) (string, error) {
	b.t.Helper()
	if ok, why := Supported(); !ok {
		b.t.Skip(why)
	}
	tmp := b.dir + "/tmp"
	b.mkdir(tmp)
	l, err := p.Command(b.t.Context(), CommandRequest{Command: command, TempDir: tmp})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "/bin/bash", "-c", command)
	cmd.Dir, cmd.Env = b.ws, append(os.Environ(), "TMPDIR="+tmp)
	out, err := output(l.Sandbox, cmd)
	if err != nil && l.Note(string(out)) == "" && strings.Contains(string(out), "denied") {
		b.t.Error("no note about the sandbox")
	}
	return string(out), err
}

// output is cmd.CombinedOutput, in a sandbox.
func output(s *Sandbox, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.Start(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}

func TestSandbox(t *testing.T) {
	tests := []struct {
		command string
		ok      bool
	}{
		{"echo x > new.txt && mkdir d && mv new.txt d/y && ln d/y z && ln -s z s && rm -r d", true},
		{"echo x > $TMPDIR/t && mv $TMPDIR/t moved", true},
		{"echo x > /dev/null && echo y > /dev/stderr && echo z > /dev/stdout && echo f | tee /dev/stderr", true},
		{"cat <<< here && cat <(echo sub)", true},
		{"cat ../outside/o.txt && ls ..", true},
		{"mkfifo p && (echo x > p & cat p)", true},
		{"echo x > ../user/.cache/c && echo x > ../user/go/pkg/mod/m", true},
		{"if [ -d /dev/shm ]; then f=$(mktemp -p /dev/shm) && rm $f; fi", true},
		{"echo x > ../outside/new", false},
		{"echo x >> ../outside/o.txt", false},
		{"rm ../outside/o.txt", false},
		{"truncate -s 0 ../outside/o.txt", false},
		{"mv sub/old.txt ../outside/", false},
		{"mv ../outside/o.txt .", false},
		{"ln ../outside/o.txt hard && echo x > hard", false},
		{"ln -s ../outside/o.txt soft && echo x > soft", false},
		{"mkdir ../outside/d", false},
		{"mv ../ws ../ws2", false},
		{"echo x > ../user/f", false},
		{"echo x > ../home/sessions/f", false},
		{"setsid -w bash -c 'echo x > ../outside/new'", false},
		{"(mknod dev b 8 0 || mknod dev c 1 3)", false},
	}
	for _, tt := range tests {
		t.Run(tt.command, func(t *testing.T) {
			b := newBox(t)
			out, err := b.sandboxed(b.policy(nil), tt.command)
			if (err == nil) != tt.ok {
				t.Errorf("%v: %s", err, out)
			}
			if got, err := os.ReadFile(b.outside + "/o.txt"); string(got) != "o\n" {
				t.Errorf("outside changed: %q, %v", got, err)
			}
		})
	}
}

func TestSandboxLetsALinkedWorkTreeCommitAfterAYes(t *testing.T) {
	b := newBox(t)
	gitdir := b.linkWorktree()
	p := b.policy(func(c *Config) { c.Approver = &person{say: yes} })
	if out, err := b.sandboxed(p, "echo x > "+gitdir+"/index; git commit --help >/dev/null 2>&1; test -s "+gitdir+"/index"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := b.sandboxed(p, "echo x > "+gitdir+"/index.lock"); err == nil {
		t.Errorf("written without a yes: %s", out)
	}
}

func TestSandboxPassesOnNoOpenFile(t *testing.T) {
	if ok, why := Supported(); !ok {
		t.Skip(why)
	}
	b := newBox(t)
	f, err := os.OpenFile(b.outside+"/o.txt", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()                                                   //nolint:errcheck // nothing was written
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil { // as this process's parent could have left it
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", fmt.Sprintf("echo x >&%d", f.Fd()))
	if out, err := output(&Sandbox{Writable: []string{b.ws}}, cmd); err == nil {
		t.Errorf("written through the open file: %s", out)
	}
}

func TestSandboxWritableReplacesTheCaches(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.dir + "/extra")
	p := b.policy(func(c *Config) {
		c.SandboxWritable = []string{b.dir + "/extra", b.dir + "/missing", b.home, "relative"}
	})
	if out, err := b.sandboxed(p, "echo x > ../extra/f"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := b.sandboxed(p, "echo x > "+b.home+"/f"); err == nil {
		t.Errorf("the configuration opened the home: %s", out)
	}
	if _, err := os.Stat(b.dir + "/user/.cache"); err == nil {
		t.Error("a cache was made")
	}
}

func TestCachesAreMadePrivateAndOnlyForCommands(t *testing.T) {
	b := newBox(t)
	p := b.policy(nil)
	if _, err := os.Stat(b.dir + "/user/.cache"); err == nil {
		t.Error("made before the first command")
	}
	if _, err := b.sandboxed(p, "true"); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{".cache", "go/pkg/mod"} {
		fi, err := os.Stat(filepath.Join(b.dir, "user", dir))
		if err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, fi, err)
		}
	}
	if _, err := os.Stat(b.dir + "/user/.npm"); err == nil {
		t.Error(".npm was made")
	}
}

// The program itself stays free, whichever thread it goes on with.
func TestSandboxHoldsTheCommandAlone(t *testing.T) {
	if ok, why := Supported(); !ok {
		t.Skip(why)
	}
	b := newBox(t)
	for range 20 {
		if out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/bash", "-c", "echo x > "+b.outside+"/f")); err == nil {
			t.Fatalf("written: %s", out)
		}
		var free sync.WaitGroup
		for i := range 16 {
			free.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				if err := os.WriteFile(fmt.Sprintf("%s/free%d", b.outside, i), nil, 0o644); err != nil {
					t.Error(err)
				}
			})
		}
		free.Wait()
	}
}

func TestNote(t *testing.T) {
	b := newBox(t)
	gitdir := b.linkWorktree()
	p := b.policy(nil)
	p.supported = func() (bool, string) { return true, "" }
	l, err := p.Command(t.Context(), CommandRequest{Command: "make", TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if note := l.Note("fatal: Unable to create 'index.lock': Permission denied"); !strings.Contains(note, gitdir) || !strings.Contains(note, b.ws) {
		t.Errorf("note %q", note)
	}
	if note := l.Note("1 test failed"); note != "" {
		t.Errorf("note %q", note)
	}
}
