package remote

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// base is a folder of ours with a short path.
func base(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDirTakesTheFirstFolderThatIsSafe(t *testing.T) {
	own := "deepseek-" + strconv.Itoa(os.Geteuid())
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, run, temp string)
		want    string // under the base; "fresh" = a fresh one
	}{
		{"the run-time folder", func(*testing.T, string, string) {}, "run/deepseek"},
		{"a run-time folder that is not there", func(t *testing.T, run, _ string) { must(t, os.Remove(run)) }, "temp/" + own},
		{"a run-time folder that others may change", func(t *testing.T, run, _ string) { must(t, os.Chmod(run, 0o777)) }, "temp/" + own},
		{"a folder that is open to others", func(t *testing.T, run, _ string) {
			must(t, os.Mkdir(filepath.Join(run, "deepseek"), 0o700))
			must(t, os.Chmod(filepath.Join(run, "deepseek"), 0o755))
		}, "temp/" + own},
		{"a link in its place", func(t *testing.T, run, _ string) {
			must(t, os.Symlink(t.TempDir(), filepath.Join(run, "deepseek")))
		}, "temp/" + own},
		{"a file in its place, and a link in the other's", func(t *testing.T, run, temp string) {
			must(t, os.WriteFile(filepath.Join(run, "deepseek"), nil, 0o600))
			must(t, os.Symlink(t.TempDir(), filepath.Join(temp, own)))
		}, "fresh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := base(t)
			run, temp := filepath.Join(b, "run"), filepath.Join(b, "temp")
			must(t, os.Mkdir(run, 0o700))
			must(t, os.Mkdir(temp, 0o700))
			tt.prepare(t, run, temp)
			old := syscall.Umask(0o777)
			dir, err := Dir(func(name string) string {
				return map[string]string{"XDG_RUNTIME_DIR": run, "TMPDIR": temp}[name]
			})
			syscall.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			if rel, _ := filepath.Rel(b, dir); rel != tt.want && (tt.want != "fresh" || !strings.HasPrefix(rel, "temp/"+freshPrefix)) {
				t.Errorf("got %s, want %s", rel, tt.want)
			}
			if info, err := os.Lstat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
				t.Errorf("%v %v", info, err)
			}
			l, err := Listen(dir)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Lstat(l.Path()); err != nil || info.Mode() != os.ModeSocket|0o600 || len(l.Path()) > maxSocketPath {
				t.Errorf("%s: %v %v", l.Path(), info, err)
			}
			must(t, l.Close())
			if _, err := os.Lstat(dir); (tt.want == "fresh") != errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder afterwards: %v", err)
			}
		})
	}
}

func TestALongPathIsNotTaken(t *testing.T) {
	long := filepath.Join(base(t), strings.Repeat("x", 90))
	must(t, os.Mkdir(long, 0o700))
	dir, err := Dir(func(string) string { return long })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, os.Remove(dir)) })
	if !strings.HasPrefix(dir, "/tmp/"+freshPrefix) {
		t.Errorf("got %s", dir)
	}
	if entries, err := os.ReadDir(long); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if _, err := Listen(long); err == nil {
		t.Error("a socket was made where its path is too long")
	}
}

func TestSocketsOfKilledOwnersAreTidiedUp(t *testing.T) {
	dir := base(t)
	old := func(name string) *net.UnixListener {
		path := filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		must(t, err)
		l.SetUnlinkOnClose(false)
		hourAgo := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(path, hourAgo, hourAgo))
		return l
	}
	must(t, old("killed.sock").Close())
	alive := old("alive.sock")
	fresh := old("fresh.sock")
	must(t, os.Chtimes(filepath.Join(dir, "fresh.sock"), time.Now(), time.Now()))
	must(t, fresh.Close())
	must(t, os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600))
	l, err := Listen(dir)
	must(t, err)
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != filepath.Base(l.Path()) {
			names = append(names, e.Name())
		}
	}
	if got := strings.Join(names, " "); got != "alive.sock fresh.sock notes" {
		t.Errorf("left: %s", got)
	}
	must(t, errors.Join(l.Close(), alive.Close()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
