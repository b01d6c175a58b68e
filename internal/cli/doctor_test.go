package cli

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

func TestDoctorFindsAHomeThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	file, dangling, closed := filepath.Join(dir, "file"), filepath.Join(dir, "dangling"), filepath.Join(dir, "closed")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(filepath.Join(dir, "none"), dangling), os.Mkdir(closed, 0o500)); err != nil {
		t.Fatal(err)
	}
	bad := map[string]bool{
		filepath.Join(dir, "a", "b"): false, dir: false,
		filepath.Join(file, "home"): true, filepath.Join(dangling, "home"): true, dangling: true,
	}
	if runtime.GOOS == "linux" {
		bad["/proc/x"], bad["/sys/x/y"] = true, true
	}
	if os.Geteuid() != 0 {
		bad[filepath.Join(closed, "home")] = true
	}
	for home, want := range bad {
		if f := checkHome(home); f.bad != want || want && f.advice == "" {
			t.Errorf("%s: %+v", home, f)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "a")); err == nil {
		t.Error("looking has made it")
	}
}
