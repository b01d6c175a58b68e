package permission

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Sandbox lets a command read everything and write only below some folders and
// to a few devices. The kernel holds the command and all its descendants to it.
type Sandbox struct {
	Writable []string // folders or files that exist; a missing one is left out
}

// Supported tells whether commands can be sandboxed here, and if not, why.
func Supported() (bool, string) {
	ok, why, err := kernelSupport()
	if err != nil {
		return false, err.Error()
	}
	return ok, why
}

// Start starts a command in the sandbox; a nil one holds it to nothing. The
// command is to be given pipes, not files, for its output: the name /dev/stderr
// leads to the file itself, which may lie outside. Where the sandbox cannot be
// made, the error says so and nothing was started. SysProcAttr must leave ptrace
// alone.
func (s *Sandbox) Start(cmd *exec.Cmd) error {
	if s == nil {
		return cmd.Start()
	}
	return s.start(cmd)
}

// caches are the folders outside the workspace that commands may write to. They
// are looked for, and made, before the first command. once owns ready.
type caches struct {
	create   []string // made with mode 0700 where they are missing
	optional []string // left out where they are missing
	once     sync.Once
	ready    []string
}

func newCaches(configured []string, home string, getenv func(string) string) *caches {
	c := &caches{}
	if configured != nil {
		for _, dir := range configured {
			if rest, ok := strings.CutPrefix(dir, "~/"); ok && home != "" {
				dir = filepath.Join(home, rest)
			}
			c.optional = append(c.optional, dir)
		}
		return c
	}
	first := func(dirs ...string) string {
		i := slices.IndexFunc(dirs, filepath.IsAbs)
		if i < 0 {
			return ""
		}
		return dirs[i]
	}
	below := func(dir, name string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(dir, name)
	}
	gopath, _, _ := strings.Cut(getenv("GOPATH"), string(filepath.ListSeparator))
	c.create = []string{
		first(getenv("XDG_CACHE_HOME"), below(home, ".cache")),
		first(getenv("GOMODCACHE"), below(gopath, "pkg/mod"), below(home, "go/pkg/mod")),
	}
	c.optional = []string{below(home, ".npm"), below(home, ".cargo")}
	return c
}

func (c *caches) dirs() []string {
	c.once.Do(func() {
		for _, dir := range c.create {
			// A cache that cannot be made is a cache that nobody writes to.
			if filepath.IsAbs(dir) && (isDir(dir) || os.MkdirAll(dir, 0o700) == nil) {
				c.optional = append(c.optional, dir)
			}
		}
		for _, dir := range c.optional {
			if !filepath.IsAbs(dir) {
				continue
			}
			if r, err := resolve(dir); err == nil && r.missing == 0 {
				c.ready = append(c.ready, r.abs)
			}
		}
	})
	return c.ready
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// standIns are variables that lead programs which insist on a place for their
// downloads to the private folder, where the usual one is missing: they may not
// make it, and would fail. npm's holds nothing else and stands in for one that may
// not be written, too; cargo's holds the user's settings.
func (p *Policy) standIns(writable []string, tmp string) []string {
	var out []string
	for _, c := range []struct {
		name, dir string
		cacheOnly bool
	}{{"npm_config_cache", ".npm", true}, {"CARGO_HOME", ".cargo", false}} {
		dir := p.getenv(c.name)
		if dir == "" && p.userHome != "" {
			dir = filepath.Join(p.userHome, c.dir)
		}
		if !filepath.IsAbs(dir) {
			continue
		}
		r, err := resolve(dir)
		if err != nil || r.missing == 0 && !c.cacheOnly || slices.ContainsFunc(writable, func(w string) bool { return within(r.abs, w) }) {
			continue
		}
		out = append(out, c.name+"="+filepath.Join(tmp, c.dir[1:]+"-cache"))
	}
	return out
}
