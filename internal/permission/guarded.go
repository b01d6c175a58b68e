package permission

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// guard is a place that tools never write to.
type guard struct {
	path   string // clean; links resolved as far as it exists
	beside string // not "": everything in the folder path whose name begins so, instead of path itself
	what   string // for messages
	secret bool   // not read either
}

func makeGuards(c Config) []guard {
	var out []guard
	add := func(g guard) {
		if g.path == "" {
			return
		}
		g.path = filepath.Clean(g.path)
		out = append(out, g)
		if r, err := resolve(g.path); err == nil && r.abs != g.path {
			g.path = r.abs
			out = append(out, g)
		}
	}
	add(guard{path: c.Home, what: "deepseek's own folder"})
	add(guard{path: c.SocketDir, what: "the folder of deepseek's sockets"})
	if c.Home != "" {
		add(guard{path: filepath.Join(c.Home, "config.yaml"), what: "the user's configuration", secret: true})
	}
	for _, path := range c.ConfigFiles {
		add(guard{path: path, what: "the user's configuration", secret: true})
	}
	add(guard{path: c.KeyFile, what: "the file with the API key", secret: true})
	for _, path := range c.SessionPaths {
		g := guard{path: path, what: "the running session"}
		if id, ok := strings.CutSuffix(filepath.Base(path), ".jsonl"); ok && id != "" {
			g.path, g.beside = filepath.Dir(path), id+"."
		}
		add(g)
	}
	return out
}

// identity tells files apart, whatever name leads to them.
type identity struct{ dev, ino uint64 }

func identityOf(path string) (identity, bool) {
	var st unix.Stat_t
	for {
		switch err := unix.Stat(path, &st); err {
		case nil:
			return identity{uint64(st.Dev), uint64(st.Ino)}, true //nolint:unconvert // the types differ between systems
		case unix.EINTR:
		default:
			return identity{}, false
		}
	}
}

// covers tells whether the guard names the resolved path or something above it.
func (g guard) covers(abs string) bool {
	if g.beside == "" {
		return within(abs, g.path)
	}
	if !within(abs, g.path) || abs == g.path {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(abs[len(g.path):], "/"), "/")
	return strings.HasPrefix(name, g.beside)
}

// look is one look at the file system: the system is asked once a path, since a
// decision meets the same folders many times over. It is taken anew for each
// decision, and where a person was asked in between. Not for concurrent use.
type look struct {
	guards []guard
	found  map[string]found
	ids    map[identity]guard // of the guards; nil before the first need
}

type found struct {
	id     identity
	exists bool
}

func (p *Policy) look() *look { return &look{guards: p.guards, found: map[string]found{}} }

func (l *look) identityOf(path string) (identity, bool) {
	f, ok := l.found[path]
	if !ok {
		f.id, f.exists = identityOf(path)
		l.found[path] = f
	}
	return f.id, f.exists
}

// guardOf finds what forbids writing to a resolved path: by name, and by
// identity, since letters of another case, a bind mount or a hard link give a
// guarded place a second name.
func (l *look) guardOf(abs string) (guard, bool) {
	for _, g := range l.guards {
		if g.covers(abs) {
			return g, true
		}
	}
	ids := l.guardedIDs()
	for dir := abs; ; dir = filepath.Dir(dir) {
		if id, ok := l.identityOf(dir); ok {
			if g, ok := ids[id]; ok {
				return g, true
			}
		}
		if dir == filepath.Dir(dir) {
			return guard{}, false
		}
	}
}

// linked finds what forbids writing to a file with several names: one of them may
// lie in a guarded place. Such files are rare, and only for them every guarded
// place is looked through. One that cannot be forbids it.
func (p *Policy) linked(ctx context.Context, fi os.FileInfo) (guard, bool, error) {
	want, several := severalNames(fi)
	if !several {
		return guard{}, false, nil
	}
	for _, g := range p.guards {
		found := false
		err := g.each(ctx, func(_ string, fi os.FileInfo) bool {
			id, _ := severalNames(fi)
			found = id == want
			return !found
		})
		if found {
			return g, true, nil
		}
		if err != nil {
			return g, false, fmt.Errorf("a file with several names is not written while %s (%s) cannot be searched for it: %w", g.path, g.what, err)
		}
	}
	return guard{}, false, nil
}

// otherNames finds a file that a command could change under another name: the
// sandbox goes by names. It looks at the user's configuration, the key, the files of
// the running session and those directly in deepseek's own folder.
func (p *Policy) otherNames() (path string, of guard, found bool) {
	for _, g := range p.guards {
		look := func(name string, fi os.FileInfo) bool {
			_, found = severalNames(fi)
			path, of = name, g
			return !found
		}
		// What cannot be looked at is judged by the names that can be.
		entries, err := os.ReadDir(g.path)
		if g.secret || g.beside != "" || err != nil {
			_ = g.each(context.Background(), look)
		} else {
			for _, e := range entries {
				if fi, err := e.Info(); err == nil && !look(filepath.Join(g.path, e.Name()), fi) {
					break
				}
			}
		}
		if found {
			return path, of, true
		}
	}
	return "", guard{}, false
}

// severalNames is the identity of a file and whether it has more than one name.
func severalNames(fi os.FileInfo) (identity, bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, false
	}
	id := identity{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // the types differ between systems
	return id, fi.Mode().IsRegular() && st.Nlink > 1
}

// each looks at every file of the guarded place, links not followed, until look
// says that it has seen enough. What is missing is no error.
func (g guard) each(ctx context.Context, look func(path string, fi os.FileInfo) bool) error {
	return filepath.WalkDir(g.path, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if g.beside != "" && err == nil && path != g.path && !g.covers(path) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		var fi os.FileInfo
		if err == nil && !d.IsDir() {
			fi, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case fi != nil && !look(path, fi):
			return fs.SkipAll
		}
		return nil
	})
}

func (l *look) guardedIDs() map[identity]guard {
	if l.ids != nil {
		return l.ids
	}
	l.ids = make(map[identity]guard, len(l.guards))
	for _, g := range l.guards {
		path := g.path
		if g.beside != "" {
			path = filepath.Join(g.path, g.beside+"jsonl")
		}
		if id, ok := l.identityOf(path); ok {
			l.ids[id] = g
		}
	}
	return l.ids
}

// overlap finds a guarded place that lies in dir, or that dir lies in: a folder
// that a command may not be given whole.
func (l *look) overlap(dir string) (guard, bool) {
	if g, ok := l.guardOf(dir); ok {
		return g, true
	}
	return l.guardBelow(dir)
}

func (l *look) guardBelow(dir string) (guard, bool) {
	want, exists := l.identityOf(dir)
	for _, g := range l.guards {
		if within(g.path, dir) {
			return g, true
		}
		for up := g.path; exists; up = filepath.Dir(up) {
			if id, ok := l.identityOf(up); ok && id == want {
				return g, true
			}
			if up == filepath.Dir(up) {
				break
			}
		}
	}
	return guard{}, false
}
