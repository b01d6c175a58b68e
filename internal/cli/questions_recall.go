package cli

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"sync"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/remote"
)

// recall remembers the questions of logs, so that who looks at them every second
// reads only those that have changed. A log grows and is never rewritten in
// place, so its size and time tell. The zero value is ready, and hides no key.
//
// mu owns seen. Methods are safe for concurrent use.
type recall struct {
	key redact.Key

	mu   sync.Mutex
	seen map[string]recalled // by path
}

type recalled struct {
	file fs.FileInfo // before it was read
	live bool
	list remote.QuestionList
	end  logstore.End
}

// questions is readQuestions. The slices of the list are the caller's.
func (r *recall) questions(ctx context.Context, path string, live bool) (remote.QuestionList, logstore.End, error) {
	file, err := os.Stat(path)
	if err != nil { // the reader says it in its own words
		return readQuestions(ctx, r.key, path, live)
	}
	r.mu.Lock()
	was, ok := r.seen[path]
	r.mu.Unlock()
	if !ok || was.live != live || !unchanged(was.file, file) {
		was = recalled{file: file, live: live}
		if was.list, was.end, err = readQuestions(ctx, r.key, path, live); err != nil {
			return was.list, was.end, err
		}
		r.mu.Lock()
		if r.seen == nil {
			r.seen = map[string]recalled{}
		}
		r.seen[path] = was
		r.mu.Unlock()
	}
	list := was.list
	list.Active, list.Settled = slices.Clone(list.Active), slices.Clone(list.Settled)
	return list, was.end, nil
}

func unchanged(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime())
}
