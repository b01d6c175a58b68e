package search

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/tool"
)

func TestGlob(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.txt": "", "b.go": "", ".hidden": "", "sub/c.txt": "", "sub/deep/d.txt": "", "sub/deep/e.go": "",
		"[odd]/f.txt": "", "{g}.txt": "", "empty/": "", ".git/config": "", "sub/.git": "gitdir: elsewhere",
	})
	if err := os.Symlink("..", filepath.Join(dir, "sub", "loop")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pattern, path string
		want          string
	}{
		{"*", "", ".hidden\n[odd]/\na.txt\nb.go\nempty/\nsub/\n{g}.txt"},
		{"*.txt", "", "a.txt\n{g}.txt"},
		{"**/*.txt", "", "[odd]/f.txt\na.txt\nsub/c.txt\nsub/deep/d.txt\n{g}.txt"},
		{"**/*.{go,txt}", "sub", "sub/c.txt\nsub/deep/d.txt\nsub/deep/e.go"},
		{"sub/*", "", "sub/c.txt\nsub/deep/\nsub/loop"},
		{"sub/**", "", "sub/c.txt\nsub/deep/\nsub/deep/d.txt\nsub/deep/e.go\nsub/loop"},
		{"sub/**/d.txt", "", "sub/deep/d.txt"},
		{"*/", "", "[odd]/\nempty/\nsub/"},
		{"./*.go", "", "b.go"},
		{"a.txt", "", "a.txt"},
		{"sub/c.txt", "", "sub/c.txt"},
		{"../deep/*.go", "sub/deep", "sub/deep/e.go"},
		{dir + "/sub/*.txt", "", "sub/c.txt"},
		{"*", "sub/deep", "sub/deep/d.txt\nsub/deep/e.go"},
		{"*.txt", dir + "/sub", "sub/c.txt"},
		{"*.txt", "a.txt", "a.txt"},
		{"*.go", "a.txt", "No files match."},
		{`\[odd\]/*`, "", "[odd]/f.txt"},
		{"[ab].*", "", "a.txt\nb.go"},
		{"[!a].*", "", "b.go"},
		{"?.go", "", "b.go"},
		{"nowhere/*", "", "No files match."},
		{"*.zip", "", "No files match."},
		{"*", "empty", "No files match."},
		{"**/config", "", "No files match."},
	} {
		t.Run(c.pattern+" in "+c.path, func(t *testing.T) {
			r := run(t, Env{Cwd: dir, Guard: guard{}}, "glob", globArgs{Pattern: c.pattern, Path: c.path})
			if r.Code != "" || r.Content != c.want {
				t.Fatalf("got\n%s\nwant\n%s", r.Content, c.want)
			}
		})
	}
	for _, c := range []struct{ pattern, include, want string }{
		{"**", "*.go", "b.go\nsub/deep/e.go"},
		{"sub/**", "sub/*.txt", "sub/c.txt"},
		{"b.go", "*.txt", "No files match."},
		{"a.txt", "*.txt", "a.txt"},
		{"**", "[x", `INVALID_ARGUMENTS: include "[x" has a [ without its ] at character 1`},
	} {
		if r := run(t, Env{Cwd: dir, Guard: guard{}}, "glob", globArgs{Pattern: c.pattern, Include: c.include}); r.Content != c.want {
			t.Errorf("%s of %s: got\n%s\nwant\n%s", c.include, c.pattern, r.Content, c.want)
		}
	}
}

func TestGlobFromAnotherFolderShowsWholePaths(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "", "other/": ""})
	r := run(t, Env{Cwd: dir + "/other", Guard: guard{}}, "glob", globArgs{Pattern: "*.txt", Path: ".."})
	if r.Content != dir+"/a.txt" {
		t.Fatalf("got %s", r.Content)
	}
}

// A hostile name must not look like a line of the answer.
func TestNamesCannotForgeLines(t *testing.T) {
	dir := tree(t, map[string]string{"x\nsrc/main.go": "word\n", "y\x1b[2K\u2028z": "word\n"})
	want := `x\x0Asrc/main.go` + "\n" + `y\x1B[2K\xE2\x80\xA8z`
	if r := run(t, Env{Cwd: dir, Guard: guard{}}, "glob", globArgs{Pattern: "**/*[oz]"}); r.Content != want {
		t.Errorf("glob: %q", r.Content)
	}
	want = `x\x0Asrc/main.go:1:word` + "\n" + `y\x1B[2K\xE2\x80\xA8z:1:word`
	if r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "word"}); r.Content != want {
		t.Errorf("grep: %q", r.Content)
	}
}

func TestGlobErrorsHaveAPlace(t *testing.T) {
	dir := tree(t, map[string]string{"a": ""})
	for _, c := range []struct {
		args       globArgs
		code, want string
	}{
		{globArgs{Pattern: ""}, tool.CodeInvalidArguments, "nothing at character 1"},
		{globArgs{Pattern: "ab[c"}, tool.CodeInvalidArguments, "a [ without its ] at character 3"},
		{globArgs{Pattern: "größe{a,b"}, tool.CodeInvalidArguments, "a { without its } at character 6"},
		{globArgs{Pattern: "a}"}, tool.CodeInvalidArguments, "a } without its { at character 2"},
		{globArgs{Pattern: `ab\`}, tool.CodeInvalidArguments, "a backslash with nothing after it at character 3"},
		{globArgs{Pattern: "[z-a]"}, "", ""},
		{globArgs{Pattern: "*", Path: "nowhere"}, CodeNotFound, `path "nowhere" does not exist`},
		{globArgs{Pattern: "*", Path: "~/x"}, tool.CodeInvalidArguments, "~ does not stand for a home here"},
		{globArgs{Pattern: "~/x/*.go"}, tool.CodeInvalidArguments, "~ does not stand for a home here"},
		{globArgs{Pattern: "*", Path: "a/b"}, tool.CodeInvalidArguments, "not a directory"},
		{globArgs{Pattern: "*", Path: "/dev/null"}, tool.CodeInvalidArguments, "neither a folder nor a file"},
	} {
		r := run(t, Env{Cwd: dir, Guard: guard{}}, "glob", c.args)
		if r.Code != c.code || !strings.Contains(r.Content, c.want) {
			t.Errorf("%+v: %+v", c.args, r)
		}
	}
}

func TestGlobIsCappedAndCounts(t *testing.T) {
	files := map[string]string{}
	for i := range 1234 {
		files[fmt.Sprintf("d%d/f%04d.txt", i%10, i)] = ""
	}
	dir := tree(t, files)
	for range 3 {
		r := run(t, Env{Cwd: dir, Guard: guard{}}, "glob", globArgs{Pattern: "**/*.txt"})
		lines := strings.Split(r.Content, "\n")
		if len(lines) != 201 || lines[0] != "d0/f0000.txt" || lines[200] != "… 1034 more" {
			t.Fatalf("%d lines, %s … %s", len(lines), lines[0], lines[len(lines)-1])
		}
	}
}

func TestIgnoreFiles(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		path  string
		want  string
	}{
		{"names at any depth", map[string]string{".gitignore": "x.log\n", "x.log": "", "a/x.log": "", "a/y": ""}, "", "a/y"},
		{"suffixes", map[string]string{".gitignore": "*.log", "x.log": "", "a/b/x.log": "", "y": ""}, "", "y"},
		{"folders only", map[string]string{".gitignore": "build/\n", "build/x": "", "a/build": "", "a/c/build/x": ""}, "", "a/build"},
		{"anchored", map[string]string{".gitignore": "/x\n", "x": "", "a/x": ""}, "", "a/x"},
		{"a slash in the middle anchors", map[string]string{".gitignore": "a/x\n", "a/x": "", "b/a/x": ""}, "", "b/a/x"},
		{"negated", map[string]string{".gitignore": "*.log\n!keep.log\n", "x.log": "", "keep.log": ""}, "", "keep.log"},
		{"the last one decides", map[string]string{".gitignore": "!x\nx\n", "x": "", "y": ""}, "", "y"},
		{"below an ignored folder nothing comes back", map[string]string{".gitignore": "a/\n!a/x\n", "a/x": "", "y": ""}, "", "y"},
		{"contents ignored, one kept", map[string]string{".gitignore": "a/*\n!a/x\n", "a/x": "", "a/y": ""}, "", "a/x"},
		{"nested", map[string]string{"a/.gitignore": "x\n/y\n", "x": "", "a/x": "", "a/y": "", "a/b/y": "", "a/b/x": ""}, "", "a/b/y\nx"},
		{"nested negates", map[string]string{".gitignore": "*.log\n", "a/.gitignore": "!*.log\n", "x.log": "", "a/x.log": ""}, "", "a/x.log"},
		{"two stars", map[string]string{".gitignore": "a/**/z\n", "a/z": "", "a/b/c/z": "", "b/z": ""}, "", "b/z"},
		{"two stars before", map[string]string{".gitignore": "**/z\n", "z": "", "a/b/z": "", "y": ""}, "", "y"},
		{"two stars after", map[string]string{".gitignore": "a/**\n", "a/x": "", "a/b/c": "", "y": ""}, "", "y"},
		{"classes and question marks", map[string]string{".gitignore": "[ab]?\n", "a1": "", "b2": "", "c3": ""}, "", "c3"},
		{"braces are letters", map[string]string{".gitignore": "{a,b}\n*{x}*\n", "a": "", "{a,b}": "", "1{x}2": ""}, "", "a"},
		{"comments, blanks, escapes", map[string]string{".gitignore": "# no\n\n\\#x\n\\!y\nz\\ z\nw  \n", "#x": "", "!y": "", "z z": "", "w": "", "no": ""}, "", "no"},
		{"CRLF", map[string]string{".gitignore": "x\r\ny/\r\n", "x": "", "y/a": "", "z": ""}, "", "z"},
		{"from a folder below", map[string]string{".git/": "", ".gitignore": "*.log\n/a/b/x\nx2\n", "a/b/x": "", "a/b/x.log": "", "a/b/y": "", "a/b/x2/q": ""}, "a/b", "a/b/y"},
		{"the exclude file", map[string]string{".git/info/exclude": "x\n", "x": "", "a/x": "", "y": ""}, "", "y"},
		{"a linked work tree's", map[string]string{".git": "gitdir: ../REPO/worktrees/w\n", "x": "", "y": ""}, "", "y"},
		{"an ignored folder that is named", map[string]string{".git/": "", ".gitignore": "out/\n", "out/x": ""}, "out", "out/x"},
		{"a bad pattern ignores nothing", map[string]string{".gitignore": "[a\nx\n", "[a": "", "x": "", "a": ""}, "", "[a\na"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, c.files)
			if strings.HasPrefix(c.files[".git"], "gitdir:") {
				repo := filepath.Join(dir, "..", "REPO")
				for name, content := range map[string]string{"worktrees/w/commondir": "../..\n", "info/exclude": "x\n"} {
					if err := os.MkdirAll(filepath.Dir(filepath.Join(repo, name)), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(repo, name), []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			r := run(t, Env{Cwd: dir, Guard: guard{}}, "glob", globArgs{Pattern: "**", Path: c.path})
			var got []string
			for line := range strings.SplitSeq(r.Content, "\n") {
				if !strings.HasSuffix(line, "/") && filepath.Base(line) != ".gitignore" {
					got = append(got, line)
				}
			}
			if strings.Join(got, "\n") != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestACancelledSearchEnds(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x", "b/c": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, args := range map[string]any{"glob": globArgs{Pattern: "**"}, "grep": grepArgs{Pattern: "x"}} {
		if r := runCtx(ctx, t, Env{Cwd: dir, Guard: guard{}}, name, args); r.Code != tool.CodeAborted {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestUnreadableFoldersAreCounted(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := tree(t, map[string]string{"a/b": "x", "c": "x"})
	if err := os.Chmod(filepath.Join(dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(dir, "a"), 0o755) //nolint:errcheck // for the clean-up
	r := run(t, Env{Cwd: dir, Guard: guard{}}, "grep", grepArgs{Pattern: "x"})
	if r.Content != "c:1:x\n(1 folders or files could not be read)" {
		t.Fatalf("got %q", r.Content)
	}
}
