package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file.
const maxFile = 1 << 20

// readRegular reads a small regular file. It never waits on a pipe or a device.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("is larger than %d bytes", limit)
	}
	return data, nil
}

// reader turns a file into a layer. A fault is given to fault, which decides
// whether reading goes on (nil) or ends.
type reader struct {
	path   string
	origin Origin
	fault  func(*Error) error
}

func (r reader) errorAt(line int, key, format string, args ...any) *Error {
	return &Error{Source: Source{Origin: r.origin, File: r.path, Line: line}, Key: key, Reason: fmt.Sprintf(format, args...)}
}

func (r reader) read(data []byte) (layer, error) {
	root, bad := r.parse(data)
	if bad != nil {
		return nil, r.fault(bad)
	}
	out := layer{}
	if root == nil {
		return out, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, val := root.Content[i], resolve(root.Content[i+1])
		v, bad := r.entry(key, val)
		if bad == nil {
			if first, twice := out[key.Value]; twice {
				bad = r.errorAt(key.Line, key.Value, "stands already on line %d", first.source.Line)
				bad.twice = true
			}
		}
		if bad != nil {
			if err := r.fault(bad); err != nil {
				return nil, err
			}
			continue
		}
		out[key.Value] = value{data: v, source: Source{Origin: r.origin, File: r.path, Line: key.Line}}
	}
	return out, nil
}

// valid is the part of data before the first byte that is no UTF-8.
func valid(data []byte) []byte {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n <= 1 {
			return data[:i]
		}
		i += n
	}
	return data
}

// parse returns the mapping of the only document, or nil for an empty file.
func (r reader) parse(data []byte) (*yaml.Node, *Error) {
	if !utf8.Valid(data) {
		return nil, r.errorAt(1+bytes.Count(valid(data), []byte("\n")), "", "is no UTF-8 text: save it as UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		line, reason := yamlFault(err)
		if line == 0 {
			line, reason = unplaced(data, reason)
		}
		return nil, r.errorAt(line, "", "%s", reason)
	}
	if err := dec.Decode(&more); err == nil {
		return nil, r.errorAt(more.Line, "", "holds more than one document: this line begins the second")
	} else if !errors.Is(err, io.EOF) {
		line, reason := yamlFault(err)
		return nil, r.errorAt(line, "", "%s", reason)
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, r.errorAt(root.Line, "", "holds no `key: value` lines")
	}
	return root, nil
}

func (r reader) entry(key, val *yaml.Node) (any, *Error) {
	s, known := Lookup(key.Value)
	if r.origin == FromProject && !s.Project {
		return nil, r.errorAt(key.Line, key.Value, "is ignored: a project may not set it")
	}
	if !known {
		hint := ""
		if near := Nearest(key.Value, keys(false)); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return nil, r.errorAt(key.Line, key.Value, "unknown key%s", hint)
	}
	switch s.Kind {
	case Prices:
		return r.prices(s.Key, val)
	case Servers:
		return r.servers(s.Key, val)
	case Paths:
		return r.paths(s.Key, val)
	}
	if val.Kind != yaml.ScalarNode || !fits(s.Kind, val.ShortTag()) {
		return nil, r.errorAt(key.Line, s.Key, "wants %s, not %s", s.Kind, unfit(s.Kind, val))
	}
	v, err := s.parse(spelled(val))
	if err == nil && r.origin == FromProject && s.Key == "model" {
		err = projectModel(val.Value)
	}
	if err != nil {
		return nil, r.errorAt(key.Line, s.Key, "%s", err)
	}
	return v, nil
}

// spelled writes a scalar as flags and variables write it: YAML has more ways to write
// a whole number (0x10, 1_000) and a switch (True). What it cannot read stays as it is.
func spelled(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!int":
		var v int64
		if n.Decode(&v) == nil {
			return strconv.FormatInt(v, 10)
		}
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return strconv.FormatBool(v)
		}
	}
	return n.Value
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func fits(k Kind, tag string) bool {
	switch k {
	case Whole:
		return tag == "!!int"
	case Number:
		return tag == "!!int" || tag == "!!float"
	case Switch:
		return tag == "!!bool"
	}
	return tag == "!!str"
}

// unfit describes a value for a setting of a kind that it does not fit.
func unfit(k Kind, n *yaml.Node) string {
	switch tag := n.ShortTag(); {
	case k == Whole && n.Kind == yaml.ScalarNode && tag == "!!float":
		return "a number such as " + n.Value
	case k != Text && k != Choice && n.Kind == yaml.ScalarNode && (tag == "!!bool" || tag == "!!int" || tag == "!!float"):
		text, _, _ := strings.Cut(describe(n), " (") // quotes would not make it fit
		return text
	}
	return describe(n)
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return "text"
	case "!!bool":
		return "true or false (quote it if it is text)"
	case "!!int", "!!float":
		return "a number (quote it if it is text)"
	}
	return n.ShortTag()
}

// yamlFault takes the line out of the parser's message.
func yamlFault(err error) (int, string) {
	m := regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`).FindStringSubmatch(err.Error())
	if m == nil {
		return 0, err.Error()
	}
	line, _ := strconv.Atoi(m[1]) // no line reads as 0
	return line, m[2]
}

// unplaced finds the line of a fault of which the parser does not say it: in the
// first one, a control byte, or in the file as a whole (0).
func unplaced(data []byte, reason string) (int, string) {
	switch {
	case strings.HasPrefix(reason, "control characters"):
		at := bytes.IndexFunc(data, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r) })
		if at < 0 {
			return 0, reason
		}
		return 1 + bytes.Count(data[:at], []byte("\n")), reason
	case strings.HasPrefix(reason, "unknown anchor"), strings.HasPrefix(reason, "document contains"), strings.HasPrefix(reason, "anchor "):
		return 0, reason
	case bytes.HasPrefix(data, []byte("\t")):
		reason = "begins with a tab: indent with blanks"
	}
	return 1, reason
}

func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
