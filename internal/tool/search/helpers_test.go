package search

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
)

type guard struct{ secret string }

func (g guard) ForRead(path string) error {
	if g.secret != "" && path == g.secret {
		return &permission.Denied{Message: "the key file is not shown to tools"}
	}
	return nil
}

// tree makes files of "path: content" pairs; a path that ends in / is a folder.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func run(t testing.TB, env Env, name string, args any) tool.Result {
	t.Helper()
	return runCtx(context.Background(), t, env, name, args)
}

func runCtx(ctx context.Context, t testing.TB, env Env, name string, args any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range New(env) {
		if tl.Spec().Name == name {
			return tl.Run(ctx, tool.Call{Arguments: raw})
		}
	}
	t.Fatalf("no tool %s", name)
	return tool.Result{}
}
