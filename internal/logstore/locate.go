package logstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deepseek/internal/session"
)

// minPart is the length of the shortest part of an id that Locate takes.
const minPart = 4

// Reasons of a LocateError.
const (
	LocateUnknown   = "unknown"
	LocateAmbiguous = "ambiguous"
	LocateShort     = "short" // less than minPart characters
	LocateNoLast    = "no-last"
	LocateNoFile    = "no-file" // the path names no session file
)

// LocateError says why a session argument names no session, or more than one.
type LocateError struct {
	Arg    string
	Reason string
	Near   []string // ids that are near, or the candidates; paths where ids are the same
	Err    error    // the system's, if it has to do with it
}

func (e *LocateError) Error() string {
	switch e.Reason {
	case LocateAmbiguous:
		return fmt.Sprintf("%q names more than one session: %s\ngive more of the id", e.Arg, strings.Join(e.Near, ", "))
	case LocateShort:
		return fmt.Sprintf("%q is too short: give at least %d characters of the id, last, or a path%s", e.Arg, minPart, e.near())
	case LocateNoLast:
		return "there is no session of this directory yet\ndeepseek sessions lists those of all directories"
	case LocateNoFile:
		if e.Err != nil {
			err := e.Err
			if path := (*fs.PathError)(nil); errors.As(err, &path) {
				err = path.Err // the path stands there already
			}
			return fmt.Sprintf("%q is no session file: %v%s", e.Arg, err, e.near())
		}
		return fmt.Sprintf("%q is no session file: it must be a regular file that ends in %s%s", e.Arg, extension, e.near())
	}
	return fmt.Sprintf("no session matches %q%s\ndeepseek sessions lists them", e.Arg, e.near())
}

// near tells of Near, in words that follow others.
func (e *LocateError) near() string {
	if len(e.Near) == 0 {
		return ""
	}
	what := "near"
	if part := IDOf(e.Arg); common(part, e.Near[0]) < shared(part) {
		what = "the newest"
	}
	return "; " + what + ": " + strings.Join(e.Near, ", ")
}

func (e *LocateError) Unwrap() error { return e.Err }

// Locate finds the file of a session argument: an id, a part of one (at least
// four characters, unique among all sessions), "last" (the session with the
// latest event among those of cwd that are no sub-agent's), or a path to a
// .jsonl file, a relative one being relative to cwd. The path it returns is
// absolute. Failures of the argument are a *LocateError.
func (s *Store) Locate(arg, cwd string) (string, error) {
	switch {
	case arg == "last":
		return s.last(cwd)
	case strings.ContainsRune(arg, filepath.Separator) || strings.HasSuffix(arg, extension):
		path, err := locateFile(arg, cwd)
		if no := (*LocateError)(nil); errors.As(err, &no) {
			if paths, err := s.Paths(); err == nil { // else nothing is near
				no.Near = near(IDOf(arg), paths)
			}
		}
		return path, err
	}
	paths, err := s.Paths()
	if err != nil {
		return "", err
	}
	var exact, part []string
	for _, p := range paths {
		switch id := IDOf(p); {
		case id == arg:
			exact = append(exact, p)
		case strings.Contains(id, arg):
			part = append(part, p)
		}
	}
	found := exact
	if len(found) == 0 {
		if len(arg) < minPart {
			return "", &LocateError{Arg: arg, Reason: LocateShort, Near: near(arg, paths)}
		}
		found = part
	}
	switch len(found) {
	case 1:
		return filepath.Abs(found[0])
	case 0:
		return "", &LocateError{Arg: arg, Reason: LocateUnknown, Near: near(arg, paths)}
	}
	return "", &LocateError{Arg: arg, Reason: LocateAmbiguous, Near: candidates(found)}
}

func (s *Store) last(cwd string) (string, error) {
	paths, err := s.pathsIn(s.Dir(cwd))
	if err != nil {
		return "", err
	}
	list, err := s.entries(context.Background(), paths)
	if err != nil {
		return "", err
	}
	for _, e := range list {
		// Of a file without a readable header nobody knows whose it is.
		if e.Header.ID != "" && e.Header.Origin != session.OriginSubagent {
			return filepath.Abs(e.Path)
		}
	}
	return "", &LocateError{Arg: "last", Reason: LocateNoLast}
}

func locateFile(arg, cwd string) (string, error) {
	path := arg
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	path, err := osFS{}.Resolve(path)
	if err != nil {
		return "", &LocateError{Arg: arg, Reason: LocateNoFile, Err: err}
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", &LocateError{Arg: arg, Reason: LocateNoFile, Err: err}
	}
	if !info.Mode().IsRegular() || !strings.HasSuffix(path, extension) {
		return "", &LocateError{Arg: arg, Reason: LocateNoFile}
	}
	return path, nil
}

const maxNear = 5 // sessions that an error names

// candidates names sessions, newest first: by id, or by path where ids repeat.
func candidates(paths []string) []string {
	seen := map[string]int{}
	for _, p := range paths {
		seen[IDOf(p)]++
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		if names[i] = IDOf(p); seen[names[i]] > 1 {
			names[i] = p
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	if more := len(names) - maxNear; more > 0 {
		names = append(names[:maxNear], fmt.Sprintf("and %d more", more))
	}
	return names
}

// shared is how many characters in a row an id that is near has of arg.
func shared(arg string) int { return max(1, min(minPart, len(arg))) }

// near is the ids that share most with arg; the newest where none is near.
func near(arg string, paths []string) []string {
	ids := make([]string, len(paths))
	for i, p := range paths {
		ids[i] = IDOf(p)
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	ids = slices.Compact(ids)
	best, found := shared(arg), []string(nil)
	for _, id := range ids {
		switch n := common(arg, id); {
		case n > best:
			best, found = n, []string{id}
		case n == best:
			found = append(found, id)
		}
	}
	if len(found) == 0 {
		found = ids
	}
	return found[:min(len(found), maxNear)]
}

// common is the length of the longest run that a and b share.
func common(a, b string) int {
	longest := 0
	row := make([]int, len(b)+1) // row[j]: the run that ends at a[i], b[j-1]
	for i := range len(a) {
		for j := len(b); j > 0; j-- {
			if a[i] != b[j-1] {
				row[j] = 0
				continue
			}
			row[j] = row[j-1] + 1
			longest = max(longest, row[j])
		}
	}
	return longest
}
