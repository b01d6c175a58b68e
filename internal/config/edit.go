package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"
)

// Set writes one setting into the user file at path, made 0600 if it is new.
// text is read as the setting's kind; lists and maps are given as YAML. The
// other lines stay as they are. The file is replaced as a whole once the
// new one has passed the same checks as when it is loaded, else not touched.
func Set(path, key, text string) error {
	s, ok := Lookup(key)
	if !ok {
		return UnknownKey(key)
	}
	f, err := openUser(path)
	if err != nil {
		return err
	}
	if bad := f.faults(f.data, key); len(bad) > 0 {
		return bad[0] // as the lines are, not as they would be
	}
	val, err := node(s, text)
	if err != nil {
		return &Error{Key: key, Reason: err.Error()}
	}
	changed, err := f.set(key, val)
	if err != nil {
		return err
	}
	if bad := f.faults(changed, ""); len(bad) > 0 {
		return &Error{Key: bad[0].Key, Reason: bad[0].Reason} // its line is in no file
	}
	return f.write(changed)
}

// Unset takes a setting out of the user file, a key that is not known too. A
// setting that is not there is no error. What else is wrong with the file is left
// to be mended: it stops nothing.
func Unset(path, key string) error {
	f, err := openUser(path)
	if err != nil {
		return err
	}
	if _, known := Lookup(key); !known && !f.has(key) {
		return UnknownKey(key)
	}
	if !f.has(key) {
		return nil
	}
	changed, err := f.unset(key)
	if err != nil {
		return err
	}
	return f.write(changed)
}

// userFile is a user file that is being changed.
type userFile struct {
	path string
	data []byte
	root *yaml.Node // the mapping; nil where there is none yet
}

// openUser reads the user file at path, which need not be there.
func openUser(path string) (*userFile, error) {
	f := &userFile{path: path}
	data, err := readRegular(path, maxFile)
	if err != nil && !missing(err) {
		return nil, f.reader().errorAt(0, "", "%s", plainReason(err))
	}
	root, bad := f.reader().parse(data)
	if bad != nil {
		return nil, bad
	}
	f.data, f.root = data, root
	return f, nil
}

func (f *userFile) reader() reader {
	return reader{path: f.path, origin: FromUser, fault: func(e *Error) error { return e }}
}

// faults are those of a text of the file, but for the value of one key.
func (f *userFile) faults(data []byte, but string) (list []*Error) {
	r := f.reader()
	r.fault = func(e *Error) error {
		if but == "" || e.twice || e.Key != but && !strings.HasPrefix(e.Key, but+".") {
			list = append(list, e)
		}
		return nil
	}
	_, _ = r.read(data) // fault never ends the reading
	return list
}

func (f *userFile) has(key string) bool { return f.at(key) >= 0 }

// at is the place of a key in the mapping, -1 if it is not there.
func (f *userFile) at(key string) int {
	if f.root != nil {
		for i := 0; i+1 < len(f.root.Content); i += 2 {
			if f.root.Content[i].Value == key {
				return i
			}
		}
	}
	return -1
}

// write replaces the file. A link stays a link.
func (f *userFile) write(data []byte) error {
	path, err := target(f.path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)), renameio.IgnoreUmask(), renameio.WithExistingPermissions())
}

// maxLinks is how many links one after the other are followed, as the system does.
const maxLinks = 40

// target is the file that a path leads to, through links to what need not be
// there yet.
func target(path string) (string, error) {
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil // no link: it is missing itself, or says later what is wrong
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: %w", path, syscall.ELOOP)
}

// node makes the YAML of a value. Text is quoted where it would read as something else.
func node(s Setting, text string) (*yaml.Node, error) {
	switch s.Kind {
	case Paths, Prices, Servers:
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) == 0 {
			return nil, fmt.Errorf("wants %s, as YAML", s.Kind)
		}
		return doc.Content[0], nil
	}
	v, err := s.parse(text)
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{}
	switch s.Kind {
	case Text, Choice, Duration:
		n.SetString(text)
	default:
		if err := n.Encode(v); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// UnknownKey is the error for a key that is not in the list.
func UnknownKey(key string) error {
	reason := "unknown key"
	if near := Nearest(key, keys(false)); near != "" {
		reason += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return &Error{Key: key, Reason: reason}
}

// Check reads the user file at path as Load does, and returns what is wrong
// with it. One that is not there is right.
func Check(path string) error {
	data, err := readRegular(path, maxFile)
	if missing(err) {
		return nil
	}
	r := reader{path: path, origin: FromUser, fault: func(e *Error) error { return e }}
	if err != nil {
		return r.errorAt(0, "", "%s", plainReason(err))
	}
	_, err = r.read(data)
	return err
}

// Begin makes a user file that says what belongs in it, 0600, unless there is one.
func Begin(path string) error {
	path, err := target(path)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("# Settings of deepseek, such as\n#   mode: timed\n# All of them, and where each value comes from: deepseek config\n")
	return errors.Join(err, f.Close())
}
