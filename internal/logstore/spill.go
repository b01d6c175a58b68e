package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Spill is the folder beside a log for what is too big for it. It is made by
// the first Create. Safe for concurrent use.
type Spill struct {
	dir string
}

// SpillFile is an open file of a spill folder.
type SpillFile struct {
	*os.File
	dir, name string
}

// Path is the absolute path of the file.
func (f *SpillFile) Path() string { return filepath.Join(f.dir, f.name) }

// Name is the name of the file within the folder.
func (f *SpillFile) Name() string { return f.name }

// Spill is the log's spill folder.
func (l *Log) Spill() *Spill { return &Spill{dir: SpillDir(l.path)} }

// Create makes a new file, 0600, named after hint and, where that is taken, a
// number. It never opens a file that is there already and follows no symbolic
// link, neither as the folder nor in it.
func (s *Spill) Create(hint string) (*SpillFile, error) {
	root, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("open the spill folder: %w", err)
	}
	f, err := s.create(root, spillName(hint))
	return f, errors.Join(err, root.Close())
}

func (s *Spill) create(root *os.Root, base string) (*SpillFile, error) {
	name := base
	for n := 2; ; n++ {
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			name = base + "." + strconv.Itoa(n)
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := f.Chmod(0o600); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &SpillFile{File: f, dir: s.dir, name: name}, nil
	}
}

// open opens the folder, which must be a folder and not a link to one.
func (s *Spill) open() (*os.Root, error) {
	err := osFS{}.Mkdir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	before, err := os.Lstat(s.dir)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", s.dir)
	}
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(before, opened) {
		err = fmt.Errorf("%s was replaced while it was opened", s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

const spillNameLength = 80

// spillName makes a file name of a hint that may be anything.
func spillName(hint string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, hint)
	name = strings.TrimLeft(name, ".-")
	if len(name) > spillNameLength {
		name = name[:spillNameLength]
	}
	if name == "" {
		name = "spill"
	}
	return name
}
