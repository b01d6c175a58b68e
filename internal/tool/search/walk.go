package search

import (
	"context"
	"io/fs"
	"os"
	"sync"
)

// entry is one file or folder of a walk.
type entry struct {
	rel   string // below the start, with slashes
	name  string
	isDir bool
	mode  fs.FileMode // type bits
}

// walk visits all that is below a folder and not ignored, from several
// goroutines at once, in no order. visit tells whether to go into a folder.
// search, if not nil, is called for each entry for which visit said yes that is
// no folder, with the number of the goroutine. Links are not followed. All
// goroutines have ended when it returns.
func walk(ctx context.Context, dir string, visit func(entry) bool, search func(worker int, e entry)) (unread int, err error) {
	r, below := above(dir)
	w := &walker{dir: dir, top: below, visit: visit, search: search}
	if w.top != "" {
		w.top += "/"
	}
	w.wake.L = &w.mu
	w.stack = []task{{rules: r}}
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stopped = true
		w.wake.Broadcast()
	})
	defer stop()
	var group sync.WaitGroup
	for i := range workers() {
		group.Go(func() { w.work(i) })
	}
	group.Wait()
	return w.unread, ctx.Err()
}

// walker shares the work. mu owns stack, active, stopped and unread.
type walker struct {
	dir, top string // of the start: its path, and its path below the top of the rules
	visit    func(entry) bool
	search   func(int, entry)

	mu      sync.Mutex
	wake    sync.Cond
	stack   []task
	active  int
	stopped bool
	unread  int
}

// task is a folder to list, or files to search.
type task struct {
	rel   string // "" is the start
	rules *rules
	files []entry
}

// batch is how many files of a large folder one goroutine takes at a time.
const batch = 32

func (w *walker) work(worker int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.stack) == 0 && w.active > 0 && !w.stopped {
			w.wake.Wait()
		}
		if w.stopped || len(w.stack) == 0 {
			w.wake.Broadcast()
			return
		}
		last := len(w.stack) - 1
		t := w.stack[last]
		w.stack = w.stack[:last]
		w.active++
		w.mu.Unlock()
		var more []task
		ok := true
		if t.files != nil {
			for _, e := range t.files {
				w.search(worker, e)
			}
		} else {
			more, ok = w.list(t)
		}
		w.mu.Lock()
		w.active--
		if !ok {
			w.unread++
		}
		w.stack = append(w.stack, more...)
		if len(more) > 0 || w.active == 0 {
			w.wake.Broadcast()
		}
	}
}

// list reads one folder and returns the work that it makes.
func (w *walker) list(t task) (more []task, ok bool) {
	dir := w.dir
	prefix := ""
	if t.rel != "" {
		dir += "/" + t.rel
		prefix = t.rel + "/"
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	entries, err := f.ReadDir(-1)
	cerr := f.Close()
	ok = err == nil && cerr == nil
	r := t.rules
	for _, d := range entries {
		if d.Name() == ".gitignore" {
			r = r.with(dir+"/.gitignore", len(w.top)+len(prefix))
			break
		}
	}
	var files []entry
	for _, d := range entries {
		e := entry{rel: prefix + d.Name(), name: d.Name(), isDir: d.IsDir(), mode: d.Type()}
		if e.name == ".git" || r != nil && r.ignores(w.top+e.rel, e.name, e.isDir) || !w.visit(e) {
			continue
		}
		switch {
		case e.isDir:
			more = append(more, task{rel: e.rel, rules: r})
		case w.search != nil:
			files = append(files, e)
			if len(files) == batch {
				more = append(more, task{files: files})
				files = nil
			}
		}
	}
	if files != nil {
		more = append(more, task{files: files})
	}
	return more, ok
}
