package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"go.yaml.in/yaml/v3"
)

// Set writes one setting into the user file at path, made 0600 if it is new.
// text is read as the setting's kind; lists and maps are given as YAML. The
// other lines keep their comments. The file is replaced as a whole once the
// new one has passed the same checks as when it is loaded, else not touched.
func Set(path, key, text string) error {
	return edit(path, key, func(s Setting, root *yaml.Node) error {
		val, err := node(s, text)
		if err != nil {
			return &Error{Key: key, Reason: err.Error()}
		}
		for i := 0; i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value == key {
				val.LineComment = root.Content[i+1].LineComment
				root.Content[i+1] = val
				return nil
			}
		}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, val)
		return nil
	})
}

// Unset takes a setting out of the user file. One that is not there is no error.
func Unset(path, key string) error {
	return edit(path, key, func(_ Setting, root *yaml.Node) error {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value == key {
				root.Content = append(root.Content[:i], root.Content[i+2:]...)
				return nil
			}
		}
		return nil
	})
}

func edit(path, key string, change func(Setting, *yaml.Node) error) error {
	s, ok := Lookup(key)
	if !ok {
		return UnknownKey(key)
	}
	r := reader{path: path, origin: FromUser, fault: func(e *Error) error { return e }}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // so that a link stays a link
	}
	data, err := readRegular(path, maxFile)
	if err != nil && !missing(err) {
		return r.errorAt(0, "", "%s", plainReason(err))
	}
	var doc yaml.Node
	root, bad := r.parse(data)
	if bad != nil {
		return bad
	}
	if root == nil { // comments alone are no document: they are kept as they are
		root = &yaml.Node{Kind: yaml.MappingNode}
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}, HeadComment: comments(data)}
	} else if err := yaml.Unmarshal(data, &doc); err != nil {
		return err
	} else {
		root = doc.Content[0]
	}
	if err := change(s, root); err != nil {
		return err
	}
	var out bytes.Buffer
	if len(root.Content) == 0 {
		out.WriteString(comments(data))
		out.WriteByte('\n')
	} else {
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		if err := enc.Encode(&doc); err != nil {
			return err
		}
	}
	if _, err := r.read(out.Bytes()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, out.Bytes(), 0o600, renameio.WithTempDir(filepath.Dir(path)), renameio.IgnoreUmask(), renameio.WithExistingPermissions())
}

// comments returns the lines that are comments.
func comments(data []byte) string {
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
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
