package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDoctorLooksAtTheHome(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		home        string
		bad, advice bool
	}{
		"private":   {dir, false, false},
		"missing":   {filepath.Join(dir, "none"), false, false},
		"open":      {open, false, true},
		"no folder": {file, true, true},
	} {
		if f := checkHome(c.home); f.bad != c.bad || (f.advice != "") != c.advice {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
