package permission

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// box is a folder of its own with a workspace, a home of the product and an
// outside. Links are resolved in its path.
type box struct {
	t                      *testing.T
	dir, ws, home, outside string
}

func newBox(t *testing.T) *box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, dir: dir, ws: dir + "/ws", home: dir + "/home", outside: dir + "/outside"}
	for _, d := range []string{b.ws + "/.git", b.ws + "/sub", b.home + "/sessions", b.outside, dir + "/user"} {
		b.mkdir(d)
	}
	b.write(b.home+"/config.yaml", "model: x\n")
	b.write(b.ws+"/sub/old.txt", "old\n")
	b.write(b.outside+"/o.txt", "o\n")
	return b
}

func (b *box) mkdir(path string) {
	b.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) write(path, text string) {
	b.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) link(target, path string) {
	b.t.Helper()
	if err := os.Symlink(target, path); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) config() Config {
	return Config{
		Level: WorkspaceWrite, Approve: ApproveAsk, Cwd: b.ws, Home: b.home, SocketDir: b.dir + "/sock",
		Getenv: func(name string) string {
			if name == "HOME" {
				return b.dir + "/user"
			}
			return ""
		},
	}
}

func (b *box) policy(change func(*Config)) *Policy {
	b.t.Helper()
	c := b.config()
	if change != nil {
		change(&c)
	}
	p, err := New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// person answers approvals and remembers what was asked.
type person struct {
	say   func(Request) Decision
	asked []Request
}

func (p *person) Approve(_ context.Context, r Request) Decision {
	p.asked = append(p.asked, r)
	return p.say(r)
}

func yes(Request) Decision { return Decision{Allowed: true} }
func no(Request) Decision  { return Decision{Message: "The user said no: not today."} }
