package permission

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// resolved is a path without links.
type resolved struct {
	abs     string
	missing int         // how many components at its end do not exist
	info    os.FileInfo // of abs, nil where it does not exist
}

// maxLinks is how many links one path may lead over, as in the kernel.
const maxLinks = 40

// resolve follows every link of an absolute path, that of the last component
// too. A link that leads to nothing is an error: what is created through it
// would lie where nobody looked.
func resolve(path string) (resolved, error) {
	if !filepath.IsAbs(path) {
		return resolved{}, &os.PathError{Op: "resolve", Path: path, Err: errors.New("the path is not absolute")}
	}
	if len(path) >= unix.PathMax {
		// Step by step it would lead somewhere, or take very long to lead nowhere.
		return resolved{}, &os.PathError{Op: "resolve", Path: path[:100] + "…", Err: syscall.ENAMETOOLONG}
	}
	r := resolved{abs: "/"}
	rest := components(path)
	links, fromLink := 0, 0 // fromLink: how many of rest come out of a link's target
	lastLink := ""
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		inLink := fromLink > 0
		if inLink {
			fromLink--
		}
		if name == ".." {
			if r.missing > 0 {
				return resolved{}, &os.PathError{Op: "resolve", Path: path, Err: syscall.ENOENT}
			}
			r.abs, r.info = filepath.Dir(r.abs), nil
			continue
		}
		r.abs = filepath.Join(r.abs, name)
		if r.missing > 0 {
			r.missing++
			continue
		}
		fi, err := os.Lstat(r.abs)
		switch {
		case errors.Is(err, os.ErrNotExist):
			if inLink {
				return resolved{}, &os.PathError{Op: "resolve", Path: path, Err: fmt.Errorf("%s is a symbolic link to something that does not exist", lastLink)}
			}
			r.missing, r.info = 1, nil
		case err != nil:
			return resolved{}, err
		case fi.Mode()&os.ModeSymlink == 0:
			r.info = fi
		default:
			if links++; links > maxLinks {
				return resolved{}, &os.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
			}
			target, err := os.Readlink(r.abs)
			if err != nil {
				return resolved{}, err
			}
			lastLink = r.abs
			parts := components(target)
			fromLink += len(parts)
			rest = append(parts, rest...)
			r.abs, r.info = filepath.Dir(r.abs), nil
			if filepath.IsAbs(target) {
				r.abs = "/"
			}
		}
	}
	if r.missing == 0 && r.info == nil {
		fi, err := os.Lstat(r.abs)
		if err != nil {
			return resolved{}, err
		}
		r.info = fi
	}
	return r, nil
}

func components(path string) []string {
	var out []string
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && name != "." {
			out = append(out, name)
		}
	}
	return out
}

// within tells whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
