package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Sandbox lets a command read everything and write only below some folders and
// to a few devices. The kernel holds the command and all its descendants to it.
type Sandbox struct {
	Writable []string // folders or files that exist; a missing one is left out
}

// helperName is argv[0] of this program where it is to restrict itself and
// become the command.
const helperName = "deepseek-sandbox"

// hasHelper is set once this process has looked whether it is the helper. A
// program that never looks would, run again as one, start from its beginning.
var hasHelper atomic.Bool

// IsHelper tells whether this process is the sandbox's helper; then nothing but
// HelperMain is to be run. Every program that uses sandboxes asks this first of
// all, tests in TestMain.
func IsHelper(argv []string) bool {
	hasHelper.Store(true)
	return len(argv) > 0 && argv[0] == helperName
}

// Supported tells whether commands can be sandboxed here, and if not, why.
func Supported() (bool, string) {
	if !hasHelper.Load() {
		return false, "this program has no entry for the sandbox's helper"
	}
	return kernelSupport()
}

// Wrap makes the program and arguments that run argv[0], a path, in the
// sandbox. It is to be given pipes, not files, for its output: the name
// /dev/stderr leads to the file itself, which may lie outside.
func (s *Sandbox) Wrap(argv []string) (path string, args []string, err error) {
	if s == nil {
		return argv[0], argv, nil
	}
	rules, err := json.Marshal(s)
	if err != nil {
		return "", nil, err
	}
	return helperPath, append([]string{helperName, string(rules)}, argv...), nil
}

// HelperMain restricts this process and becomes the command. It returns only
// on a failure, with the exit code; the command has then not run.
func HelperMain() int {
	err := become(os.Args)
	fmt.Fprintf(os.Stderr, "deepseek: the command was not run, the sandbox failed: %v\n", err)
	return 126
}

func become(argv []string) error {
	if len(argv) < 3 {
		return errors.New("it takes its rules and a command")
	}
	var s Sandbox
	if err := json.Unmarshal([]byte(argv[1]), &s); err != nil {
		return err
	}
	return s.exec(argv[2], argv[2:], os.Environ())
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
