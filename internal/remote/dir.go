package remote

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxSocketPath fits the address of a Unix socket on every system.
	maxSocketPath = 100
	socketSuffix  = ".sock"
	socketName    = 8 + len(socketSuffix) // bytes
	// freshPrefix begins the name of a folder that serves one owner only.
	freshPrefix = "deepseek-own-"
)

// Dir returns the folder for control sockets, made if it is missing:
// $XDG_RUNTIME_DIR/deepseek, else deepseek-UID in the temporary folder, else a
// fresh private one. The folder is ours, no link and closed to everybody else,
// and a socket in it has a path that is short enough. getenv is os.Getenv or alike.
func Dir(getenv func(string) string) (string, error) {
	temp := getenv("TMPDIR")
	if temp == "" {
		temp = "/tmp"
	}
	var candidates []string
	if run := getenv("XDG_RUNTIME_DIR"); run != "" {
		candidates = append(candidates, filepath.Join(run, "deepseek"))
	}
	candidates = append(candidates, filepath.Join(temp, "deepseek-"+strconv.Itoa(os.Geteuid())))
	var reasons []error
	for _, dir := range candidates {
		err := private(dir)
		if err == nil {
			return dir, nil
		}
		reasons = append(reasons, err)
	}
	for _, parent := range []string{temp, "/tmp"} {
		dir, err := os.MkdirTemp(parent, freshPrefix)
		if err == nil {
			if err = os.Chmod(dir, 0o700); err == nil { // whatever the umask took
				err = private(dir)
			}
			if err == nil {
				return dir, nil
			}
			err = errors.Join(err, os.Remove(dir))
		}
		reasons = append(reasons, err)
	}
	return "", fmt.Errorf("no folder for the control socket: %w", errors.Join(reasons...))
}

// private makes the folder if it is missing and makes sure that nobody else
// can reach into it or put another in its place.
func private(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%s: not an absolute path", dir)
	}
	if n := len(dir) + 1 + socketName; n > maxSocketPath {
		return fmt.Errorf("%s: the path of a socket in it would have %d bytes, %d are possible", dir, n, maxSocketPath)
	}
	if err := guarded(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		if err := os.Chmod(dir, 0o700); err != nil { // whatever the umask took
			return err
		}
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a folder, or a link to one", dir)
	}
	if owner(info) != os.Geteuid() {
		return fmt.Errorf("%s: belongs to another user", dir)
	}
	if info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s: has mode %#o, want 0700", dir, info.Mode().Perm())
	}
	return nil
}

// guarded makes sure that others cannot exchange what lies in a folder.
func guarded(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: not a folder", dir)
	}
	if o := owner(info); o != os.Geteuid() && o != 0 {
		return fmt.Errorf("%s: belongs to another user", dir)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%s: others can exchange what lies in it", dir)
	}
	return nil
}

func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// newSocketPath is a path that nobody uses, as far as chance goes.
func newSocketPath(dir string) string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return filepath.Join(dir, hex.EncodeToString(b[:])+socketSuffix)
}

// sweep removes the sockets of owners that were killed. One that was made
// within the last minute is left alone: its owner may not listen yet.
func sweep(dir string, now time.Time) {
	dialer := net.Dialer{Timeout: time.Second}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // what cannot be listed cannot be tidied; listening will say why
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Type() != fs.ModeSocket || !strings.HasSuffix(e.Name(), socketSuffix) || now.Sub(info.ModTime()) < time.Minute {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := dialer.DialContext(context.Background(), "unix", path)
		if err == nil {
			_ = c.Close() // an owner lives there
			continue
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			// Another owner may tidy at the same time: gone is gone.
			_ = os.Remove(path)
		}
	}
}
