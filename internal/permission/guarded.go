package permission

import (
	"path/filepath"
	"strings"

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

// guardOf finds what forbids writing to a resolved path: by name, and by
// identity, since letters of another case, a bind mount or a hard link give a
// guarded place a second name.
func (p *Policy) guardOf(abs string) (guard, bool) {
	for _, g := range p.guards {
		if g.covers(abs) {
			return g, true
		}
	}
	ids := p.guardedIDs()
	for dir := abs; ; dir = filepath.Dir(dir) {
		if id, ok := identityOf(dir); ok {
			if g, ok := ids[id]; ok {
				return g, true
			}
		}
		if dir == filepath.Dir(dir) {
			return guard{}, false
		}
	}
}

func (p *Policy) guardedIDs() map[identity]guard {
	ids := make(map[identity]guard, len(p.guards))
	for _, g := range p.guards {
		path := g.path
		if g.beside != "" {
			path = filepath.Join(g.path, g.beside+"jsonl")
		}
		if id, ok := identityOf(path); ok {
			ids[id] = g
		}
	}
	return ids
}

// overlap finds a guarded place that lies in dir, or that dir lies in: a folder
// that a command may not be given whole.
func (p *Policy) overlap(dir string) (guard, bool) {
	if g, ok := p.guardOf(dir); ok {
		return g, true
	}
	return p.guardBelow(dir)
}

func (p *Policy) guardBelow(dir string) (guard, bool) {
	want, exists := identityOf(dir)
	for _, g := range p.guards {
		if within(g.path, dir) {
			return g, true
		}
		for up := g.path; exists; up = filepath.Dir(up) {
			if id, ok := identityOf(up); ok && id == want {
				return g, true
			}
			if up == filepath.Dir(up) {
				break
			}
		}
	}
	return guard{}, false
}
