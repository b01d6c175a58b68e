package permission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Access is a way to write one path: a folder handle that cannot be left, and
// the path below it. The caller closes Root.
type Access struct {
	Root *os.Root
	Rel  string // below Root; but for folders that do not exist yet, one name
	Abs  string // the same place, links resolved

	check func(os.FileInfo) error
}

// Check is for whoever writes into a file as it is, instead of putting another
// in its place: fi is of the open file, which may be another one than was there at the
// decision, and may have a name in a place that tools never write to. The error
// is a *Denied or names what could not be looked at.
func (a Access) Check(fi os.FileInfo) error {
	if a.check == nil {
		return nil
	}
	return a.check(fi)
}

// AskWrite is what a person is shown when a write needs a yes.
type AskWrite struct {
	Tool   string
	CallID string
	Title  string // one line
	Detail string // the diff
}

// Denied is the error of an access that is not allowed. Its text is for the model.
type Denied struct {
	Message string
	Asked   bool // a yes was needed and not given; else no yes would have helped
}

func (d *Denied) Error() string { return d.Message }

// errMoved is the error of a path that led elsewhere a moment ago.
var errMoved = errors.New("the path changed while it was being opened; look at it again")

// ForWrite decides on a change of path, which is absolute, and waits for a
// person where it must. The error is a *Denied, that of ctx, or one that names
// the path. Nothing is created, save missing folders where the workspace holds
// a place that tools never write to: a link put in between could lead there.
func (p *Policy) ForWrite(ctx context.Context, path string, ask AskWrite) (Access, error) {
	r, err := p.changeable(ctx, path)
	if err != nil {
		return Access{}, err
	}
	inside := within(r.abs, p.workspace)
	if !inside && p.Level() != FullAccess {
		err := p.Ask(ctx, Request{
			Tool: ask.Tool, CallID: ask.CallID, Title: ask.Title, Detail: ask.Detail,
			Reason: fmt.Sprintf("%s lies outside the workspace %s", r.abs, p.workspace),
		})
		if err != nil {
			return Access{}, err
		}
		// A person takes time: what was shown must be what is written.
		again, err := p.changeable(ctx, path)
		if err != nil {
			return Access{}, err
		}
		if again.abs != r.abs {
			return Access{}, &os.PathError{Op: "open", Path: path, Err: errMoved}
		}
		r = again
	}
	a, err := p.open(r, inside)
	a.check = func(fi os.FileInfo) error { return p.unlinked(ctx, r.abs, fi) }
	return a, err
}

// unlinked refuses a file that has a name in a guarded place too.
func (p *Policy) unlinked(ctx context.Context, abs string, fi os.FileInfo) error {
	g, found, err := p.linked(ctx, fi)
	if found {
		return &Denied{Message: fmt.Sprintf("%s is never written by tools: it is a hard link to a file that belongs to %s.", abs, g.what)}
	}
	return err
}

// changeable resolves path and refuses what no approval opens.
func (p *Policy) changeable(ctx context.Context, path string) (resolved, error) {
	r, err := resolve(path)
	if err != nil {
		return r, err
	}
	if g, ok := p.look().guardOf(r.abs); ok {
		return r, &Denied{Message: fmt.Sprintf("%s is never written by tools: it belongs to %s.", r.abs, g.what)}
	}
	if r.info != nil {
		if err := p.unlinked(ctx, r.abs, r.info); err != nil {
			return r, err
		}
	}
	if p.Level() == ReadOnly {
		return r, &Denied{Message: fmt.Sprintf("%s was not changed: this session is read-only. Tell the user what you would change.", r.abs)}
	}
	if r.info != nil && r.info.IsDir() {
		return r, &os.PathError{Op: "write", Path: r.abs, Err: syscall.EISDIR}
	}
	return r, nil
}

// open makes the handle: the deepest folder of r that exists, and what is below.
func (p *Policy) open(r resolved, inside bool) (Access, error) {
	dir := filepath.Dir(r.abs)
	for range r.missing - 1 {
		dir = filepath.Dir(dir)
	}
	root, err := p.openDir(dir, inside)
	if err != nil {
		return Access{}, err
	}
	rel, err := filepath.Rel(dir, r.abs)
	if err != nil {
		return Access{}, errors.Join(err, root.Close())
	}
	if _, ok := p.look().guardBelow(dir); ok {
		for len(components(rel)) > 1 {
			name := components(rel)[0]
			if err := root.Mkdir(name, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
				return Access{}, errors.Join(err, root.Close())
			}
			if root, err = p.step(root, name); err != nil {
				return Access{}, err
			}
			rel = rel[len(name)+1:]
		}
	}
	return Access{Root: root, Rel: rel, Abs: r.abs}, nil
}

// openDir opens a folder that was resolved a moment ago. In the workspace it
// goes down from there one name at a time, so that no link can be put in the
// way; elsewhere, where a folder on the way may be closed to listing, it looks
// afterwards whether the path still leads to what was opened.
func (p *Policy) openDir(dir string, inside bool) (*os.Root, error) {
	if !inside {
		root, err := openStill(dir)
		if err != nil {
			return nil, err
		}
		if err := p.unguarded(root); err != nil {
			return nil, errors.Join(err, root.Close())
		}
		return root, nil
	}
	// The workspace may lie in a folder that commands write to.
	root, err := openStill(p.workspace)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(p.workspace, dir)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	for _, name := range components(rel) {
		if root, err = p.step(root, name); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// openStill opens a folder and looks whether its path, which has no links, leads
// to what was opened.
func openStill(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var again resolved
		if again, err = resolve(dir); err == nil && (again.abs != dir || again.info == nil || !os.SameFile(opened, again.info)) {
			err = &os.PathError{Op: "open", Path: dir, Err: errMoved}
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// step goes from a folder into one of its folders, never over a link, and
// closes the handle it came from, whatever happens.
func (p *Policy) step(root *os.Root, name string) (*os.Root, error) {
	defer root.Close() //nolint:errcheck // a folder opened for reading
	want, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	next, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	got, err := next.Stat(".")
	if err == nil && !os.SameFile(want, got) {
		err = &os.PathError{Op: "open", Path: filepath.Join(root.Name(), name), Err: errMoved}
	}
	if err == nil {
		err = p.unguarded(next)
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// unguarded looks at the folder itself, not at a name that led to it.
func (p *Policy) unguarded(root *os.Root) error {
	fi, err := root.Stat(".")
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return &os.PathError{Op: "stat", Path: root.Name(), Err: errors.ErrUnsupported}
	}
	id := identity{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // the types differ between systems
	if g, ok := p.look().guardedIDs()[id]; ok {
		return &Denied{Message: fmt.Sprintf("%s is never written by tools: it belongs to %s.", root.Name(), g.what)}
	}
	return nil
}

// ForRead refuses the key file and the user's configuration, under whatever
// name. A path that does not exist is not its business.
func (p *Policy) ForRead(path string) error {
	id, exists := identityOf(path)
	clean := filepath.Clean(path)
	for _, g := range p.guards {
		if !g.secret {
			continue
		}
		same := clean == g.path
		if !same && exists {
			other, ok := identityOf(g.path)
			same = ok && other == id
		}
		if same {
			return &Denied{Message: fmt.Sprintf("%s is not read by tools: it is %s.", path, g.what)}
		}
	}
	return nil
}
