package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

// family is the file of a session and those of its sub-agents, theirs
// included, each behind its parent's. A session that was begun from another
// one, but is no sub-agent, is a session of its own.
//
// The sub-agents of a session of the store are looked for in the whole store;
// those of a file elsewhere, which may be a copy, only beside it.
func family(ctx context.Context, store *logstore.Store, home, path string) ([]string, error) {
	h, err := logstore.ReadHeader(path)
	if err != nil {
		if !errors.Is(err, session.ErrDamaged) && !errors.Is(err, session.ErrTooNew) {
			return nil, err
		}
		h.ID = fileID(path)
	}
	inside, err := inStore(home, path)
	if err != nil {
		return nil, err
	}
	relatives := relativesBeside
	if inside {
		relatives = func(context.Context, string) ([]logstore.Entry, error) { return store.List(ctx) }
	}
	all, err := relatives(ctx, path)
	if err != nil {
		return nil, err
	}
	children := map[string][]logstore.Entry{}
	for _, e := range all {
		if e.Header.Origin == originSubagent && e.Header.ParentSession != "" {
			children[e.Header.ParentSession] = append(children[e.Header.ParentSession], e)
		}
	}
	paths, parents := []string{path}, []string{h.ID}
	seen := map[string]bool{h.ID: true} // a header may name anything as its parent
	for len(parents) > 0 {
		brood := children[parents[0]]
		parents = parents[1:]
		slices.SortFunc(brood, func(a, b logstore.Entry) int { return strings.Compare(a.Path, b.Path) })
		for _, e := range brood {
			if !seen[e.Header.ID] {
				seen[e.Header.ID] = true
				paths, parents = append(paths, e.Path), append(parents, e.Header.ID)
			}
		}
	}
	return paths, nil
}

// relativesBeside are the sessions in the folder of a file.
func relativesBeside(ctx context.Context, path string) ([]logstore.Entry, error) {
	dir := filepath.Dir(path)
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []logstore.Entry
	for _, f := range files {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !f.Type().IsRegular() || !strings.HasSuffix(f.Name(), logExtension) {
			continue
		}
		p := filepath.Join(dir, f.Name())
		if h, err := logstore.ReadHeader(p); err == nil { // what else lies there is none of ours
			all = append(all, logstore.Entry{ID: fileID(p), Path: p, Header: h})
		}
	}
	return all, nil
}

const logExtension = ".jsonl"

// fileID is the id that the name of a log carries.
func fileID(path string) string { return strings.TrimSuffix(filepath.Base(path), logExtension) }

// inStore tells whether a file is one of the home's sessions.
func inStore(home, path string) (bool, error) {
	root, err := filepath.EvalSymlinks(filepath.Join(home, "sessions"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false, err
	}
	return filepath.Dir(filepath.Dir(path)) == root, nil
}
