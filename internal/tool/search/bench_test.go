package search

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bigTree is a work tree of 50,000 source-like files in 1,000 folders.
func bigTree(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	r := rand.New(rand.NewSource(1))
	words := strings.Fields("func return if err nil range for type struct interface string int context error package import var const switch case default value handler request response client server config option")
	var text strings.Builder
	for d := range 1000 {
		folder := filepath.Join(dir, fmt.Sprintf("m%02d/p%02d", d/50, d%50))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 50 {
			text.Reset()
			for text.Len() < 4000 {
				for range 8 {
					text.WriteString(words[r.Intn(len(words))] + " ")
				}
				text.WriteByte('\n')
			}
			if f == 7 && d%10 == 0 {
				text.WriteString("a Rare needle here\n")
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%02d.go", f)), []byte(text.String()), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\nbuild/\n/out\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	return dir
}

func BenchmarkTree(b *testing.B) {
	dir := bigTree(b)
	env := Env{Cwd: dir, Guard: guard{}}
	for _, c := range []struct {
		name, tool string
		args       any
	}{
		{"glob all", "glob", globArgs{Pattern: "**/*.go"}},
		{"glob top", "glob", globArgs{Pattern: "*"}},
		{"grep literal", "grep", grepArgs{Pattern: "needle"}},
		{"grep ignoring case", "grep", grepArgs{Pattern: "(?i)RARE NEEDLE"}},
		{"grep inner literal", "grep", grepArgs{Pattern: `\w+ needle \w+`}},
		{"grep alternatives", "grep", grepArgs{Pattern: `needle|haystack`}},
		{"grep without literal", "grep", grepArgs{Pattern: `[A-Z]\w+ [n-z]`}},
		{"grep everything", "grep", grepArgs{Pattern: "func"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if r := run(b, env, c.tool, c.args); r.Code != "" {
					b.Fatal(r.Content)
				}
			}
		})
	}
	if keep := os.Getenv("KEEP_TREE"); keep != "" {
		if err := os.CopyFS(keep, os.DirFS(dir)); err != nil {
			b.Fatal(err)
		}
	}
}
