package acp

import "testing"

func TestDiffsOfAUnifiedDiff(t *testing.T) {
	two := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n@@ -9,2 +9,3 @@\n nine\n-ten\n\\ No newline at end of file\n+ten\n+eleven\n"
	shown, where := diffs("/ws/f", two)
	if len(shown) != 2 || len(where) != 2 || *where[0].Line != 2 || *where[1].Line != 10 {
		t.Fatalf("%+v %+v", shown, where)
	}
	if d := shown[0].Diff; *d.OldText != "one\ntwo\n" || d.NewText != "one\nzwei\n" {
		t.Errorf("%+v", d)
	}
	if d := shown[1].Diff; *d.OldText != "nine\nten" || d.NewText != "nine\nten\neleven\n" {
		t.Errorf("%+v", d)
	}
	for _, c := range []struct {
		name, diff string
		line       int
	}{
		{"a new file", "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", 1},
		{"lines at the end", "--- a/f\n+++ b/f\n@@ -7,2 +7,3 @@\n a\n b\n+c\n", 9},
		{"lines taken out", "--- a/f\n+++ b/f\n@@ -7,3 +7,2 @@\n a\n-b\n c\n", 8},
		{"lines taken out at the end", "--- a/f\n+++ b/f\n@@ -7,3 +7,2 @@\n a\n b\n-c\n", 8},
		{"all taken out", "--- a/f\n+++ b/f\n@@ -1,2 +0,0 @@\n-a\n-b\n", 1},
		{"a first line", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n", 1},
		{"an end of line", "--- a/f\n+++ b/f\n@@ -3,2 +3,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", 4},
	} {
		if _, where := diffs("/ws/f", c.diff); len(where) != 1 || *where[0].Line != c.line {
			t.Errorf("%s: at %d, want line %d", c.name, *where[0].Line, c.line)
		}
	}
	for _, odd := range []string{"", "\n", "@@ ", "@@ x\n", "@@ -1 +\n+a", "no diff\n+x\n"} {
		if _, where := diffs("/ws/f", odd); len(where) == 0 {
			t.Errorf("%q: no place", odd)
		}
	}
}
