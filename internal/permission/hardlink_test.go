package permission

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

func (b *box) hardLink(file, name string) {
	b.t.Helper()
	if err := os.Link(file, name); err != nil {
		b.t.Fatal(err)
	}
}

// A second name of a file in a guarded place is no way to change it, under any level.
func TestForWriteRefusesHardLinksIntoGuardedPlaces(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.home + "/sub/deep")
	b.mkdir(b.outside + "/sessions/1.spill/x")
	for file, name := range map[string]string{
		b.home + "/AGENTS.md":                   "instructions",
		b.home + "/sub/deep/x.txt":              "deep",
		b.home + "/sessions/other.jsonl":        "another session",
		b.outside + "/sessions/1.jsonl":         "session",
		b.outside + "/sessions/1.spill/x/y.txt": "spill",
		b.outside + "/key":                      "key",
		b.outside + "/conf.yaml":                "configuration",
	} {
		b.write(file, "x\n")
		b.hardLink(file, b.ws+"/"+name)
		if name == "deep" {
			b.mkdir(b.ws + "/folder")
			b.hardLink(file, b.ws+"/folder/deep")
			b.link("folder/deep", b.ws+"/soft")
		}
	}
	b.write(b.outside+"/sessions/2.jsonl", "x\n")
	b.hardLink(b.outside+"/sessions/2.jsonl", b.ws+"/elsewhere")
	b.write(b.ws+"/one", "x\n")
	b.hardLink(b.ws+"/one", b.ws+"/two")
	for _, level := range []Level{WorkspaceWrite, FullAccess} {
		p := b.policy(func(c *Config) {
			c.Level, c.KeyFile, c.ConfigFiles, c.SessionPaths = level, b.outside+"/key", []string{b.outside + "/conf.yaml"}, []string{b.outside + "/sessions/1.jsonl"}
		})
		for name, ok := range map[string]bool{
			"instructions": false, "deep": false, "folder/deep": false, "soft": false, "another session": false, "session": false,
			"spill": false, "key": false, "configuration": false, "elsewhere": true, "one": true, "two": true, "sub/old.txt": true,
		} {
			a, err := p.ForWrite(t.Context(), b.ws+"/"+name, AskWrite{})
			var denied *Denied
			if ok {
				if err != nil {
					t.Errorf("%s, %s: %v", level, name, err)
					continue
				}
				if err := a.Root.Close(); err != nil {
					t.Error(err)
				}
			} else if !errors.As(err, &denied) || denied.Asked || !strings.Contains(denied.Message, "never written by tools") {
				t.Errorf("%s, %s: %v", level, name, err)
			}
		}
	}
}

// What is put at the path after the decision is judged again, by the open file.
func TestAccessCheckSeesTheFileItself(t *testing.T) {
	b := newBox(t)
	b.write(b.home+"/AGENTS.md", "x\n")
	b.hardLink(b.home+"/AGENTS.md", b.ws+"/aside")
	a, err := b.policy(nil).ForWrite(t.Context(), b.ws+"/sub/old.txt", AskWrite{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Root.Close() //nolint:errcheck // a folder opened for reading
	for name, ok := range map[string]bool{"sub/old.txt": true, "aside": false} {
		fi, err := os.Stat(b.ws + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Check(fi); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForWriteOfAHardLinkEndsWithItsContext(t *testing.T) {
	b := newBox(t)
	b.hardLink(b.ws+"/sub/old.txt", b.ws+"/two")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.policy(nil).ForWrite(ctx, b.ws+"/two", AskWrite{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The sandbox goes by names, so that a command is asked for where a file that it
// may not change has another one.
func TestCommandAsksWhereGuardedFilesHaveOtherNames(t *testing.T) {
	tests := map[string]struct {
		file string // below the box
		asks bool
	}{
		"configuration":           {"home/config.yaml", true},
		"instructions":            {"home/AGENTS.md", true},
		"another configuration":   {"outside/conf.yaml", true},
		"key":                     {"outside/key", true},
		"session":                 {"outside/sessions/1.jsonl", true},
		"beside the session":      {"outside/sessions/1.owner", true},
		"spill":                   {"outside/sessions/1.spill/x", true},
		"beside, another session": {"outside/sessions/2.jsonl", false},
		"outside":                 {"outside/o.txt", false},
	}
	for name, tt := range tests {
		for _, level := range []Level{WorkspaceWrite, FullAccess} {
			b := newBox(t)
			b.mkdir(b.outside + "/sessions/1.spill")
			b.write(b.dir+"/"+tt.file, "x\n")
			b.hardLink(b.dir+"/"+tt.file, b.ws+"/second")
			who := &person{say: yes}
			p := b.policy(func(c *Config) {
				c.Approver, c.Level = who, level
				c.KeyFile, c.ConfigFiles, c.SessionPaths = b.outside+"/key", []string{b.outside + "/conf.yaml"}, []string{b.outside + "/sessions/1.jsonl"}
			})
			p.supported = func() (bool, string, error) { return true, "", nil }
			if _, err := p.Command(t.Context(), CommandRequest{Command: "echo x >> second", TempDir: t.TempDir()}); err != nil {
				t.Fatal(err)
			}
			if asks := tt.asks && level != FullAccess; len(who.asked) > 0 != asks {
				t.Errorf("%s, %s: asked %+v", name, level, who.asked)
			} else if asks && (!strings.Contains(who.asked[0].Reason, b.dir+"/"+tt.file) || !strings.Contains(who.asked[0].Reason, "more than one name")) {
				t.Errorf("%s: %s", name, who.asked[0].Reason)
			}
		}
	}
}
