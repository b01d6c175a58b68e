package files

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
)

// fakeGuard is the workspace rule alone: below root without asking, else by allow.
type fakeGuard struct {
	root      string
	allow     bool
	secret    string
	asked     []permission.AskWrite
	onWrite   func() // between the decision and the handing out
	writesErr error
}

func (g *fakeGuard) ForRead(path string) error {
	if path == g.secret {
		return &permission.Denied{Message: "the key file is not shown to tools"}
	}
	return nil
}

func (g *fakeGuard) ForWrite(_ context.Context, path string, ask permission.AskWrite) (permission.Access, error) {
	g.asked = append(g.asked, ask)
	if g.writesErr != nil {
		return permission.Access{}, g.writesErr
	}
	abs, err := settled(path)
	if err != nil {
		return permission.Access{}, err
	}
	base := g.root
	rel, err := filepath.Rel(base, abs)
	if err != nil || !filepath.IsLocal(rel) {
		if !g.allow {
			return permission.Access{}, &permission.Denied{Asked: true, Message: path + " is outside the workspace and nobody could be asked"}
		}
		base, rel = filepath.Dir(abs), filepath.Base(abs)
	}
	root, err := os.OpenRoot(base)
	if g.onWrite != nil {
		g.onWrite()
	}
	return permission.Access{Root: root, Rel: rel, Abs: abs}, err
}

// settled resolves the links of the part of a path that exists.
func settled(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	up, err := settled(filepath.Dir(path))
	return filepath.Join(up, filepath.Base(path)), err
}

// box is a workspace with the tools over it.
type box struct {
	t     *testing.T
	dir   string
	guard *fakeGuard
	env   Env
	tools map[string]tool.Tool
}

func newBox(t *testing.T) *box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{t: t, dir: dir, guard: &fakeGuard{root: dir}, tools: map[string]tool.Tool{}}
	b.env = Env{Cwd: dir, Guard: b.guard, Observed: &Observed{}}
	for _, tl := range New(b.env) {
		b.tools[tl.Spec().Name] = tl
	}
	return b
}

func (b *box) path(name string) string { return filepath.Join(b.dir, name) }

func (b *box) put(name, content string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) get(name string) string {
	b.t.Helper()
	raw, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

func (b *box) call(name string, args any) tool.Result {
	b.t.Helper()
	return b.callCtx(b.t.Context(), name, args)
}

func (b *box) callCtx(ctx context.Context, name string, args any) tool.Result {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.tools[name].Run(ctx, tool.Call{ID: "c1", Arguments: raw})
	if r.Code != "" && !strings.HasPrefix(r.Content, r.Code+": ") {
		b.t.Fatalf("an error without its code in front: %+v", r)
	}
	return r
}

func (b *box) read(name string) tool.Result {
	b.t.Helper()
	return b.call("read", readArgs{FilePath: name})
}

// clean fails if temporary files were left anywhere.
func (b *box) clean() {
	b.t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.Contains(filepath.Base(path), ".deepseek-") {
			b.t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func want(t *testing.T, r tool.Result, code string, parts ...string) {
	t.Helper()
	if r.Code != code {
		t.Fatalf("code %q, want %q: %s", r.Code, code, r.Content)
	}
	for _, p := range parts {
		if !strings.Contains(r.Content, p) {
			t.Fatalf("no %q in:\n%s", p, r.Content)
		}
	}
}
