package config

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// errLines says that a change of lines does not mean what it should.
var errLines = errors.New("the lines cannot be changed one by one")

// set is the text of the file with a value in it, the first where there are
// several. Lines are changed one by one, so that all others stay as they are;
// where the file is written in a way that does not allow it, as a whole, which
// keeps its comments.
func (f *userFile) set(key string, val *yaml.Node) ([]byte, error) {
	at := f.at(key)
	if at >= 0 {
		val.LineComment = f.root.Content[at+1].LineComment
	}
	out, err := f.setLine(key, val, at)
	if err == nil {
		err = f.means(out, key, val)
	}
	if err == nil {
		return out, nil
	}
	if at >= 0 {
		return f.encode(key, func(root *yaml.Node) { root.Content[at+1] = val })
	}
	return f.encode(key, func(root *yaml.Node) {
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, val)
	})
}

// unset is the text of the file without a key.
func (f *userFile) unset(key string) ([]byte, error) {
	t := split(f.data)
	var err error
	for i := len(f.root.Content) - 2; i >= 0 && err == nil; i -= 2 { // from below: the lines above keep their numbers
		if f.root.Content[i].Value == key {
			var first, end int
			if first, end, err = t.extent(f.root, i); err == nil {
				t.lines = slices.Delete(t.lines, first, end)
			}
		}
	}
	if n := len(t.lines); n > 0 && t.lines[n-1] != "" {
		t.lines = append(t.lines, "")
	}
	if out := t.join(); err == nil && f.means(out, key, nil) == nil {
		return out, nil
	}
	return f.encode(key, func(root *yaml.Node) {
		for i := len(root.Content) - 2; i >= 0; i -= 2 {
			if root.Content[i].Value == key {
				root.Content = slices.Delete(root.Content, i, i+2)
			}
		}
	})
}

func (f *userFile) setLine(key string, val *yaml.Node, at int) ([]byte, error) {
	enc, err := encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, val}})
	if err != nil {
		return nil, err
	}
	t := split(f.data)
	fresh := strings.Split(strings.TrimSuffix(string(enc), "\n"), "\n")
	indent := ""
	if f.root != nil && len(f.root.Content) > 0 {
		indent = strings.Repeat(" ", f.root.Content[0].Column-1)
	}
	for i := range fresh {
		fresh[i] = indent + fresh[i]
	}
	if at < 0 {
		if n := len(t.lines); n > 0 && t.lines[n-1] == "" {
			t.lines = t.lines[:n-1] // behind the last line's end
		}
		t.lines = append(append(t.lines, fresh...), "")
		return t.join(), nil
	}
	first, end, err := t.extent(f.root, at)
	if err != nil {
		return nil, err
	}
	if len(fresh) > 1 && val.LineComment != "" && !strings.Contains(fresh[0], "#") {
		fresh[0] += " " + val.LineComment
	}
	// What stands between key, value and comment stays, in a line that stays one.
	if old := valueLine().FindStringSubmatch(t.lines[first]); old != nil && end == first+1 && len(fresh) == 1 {
		if now := valueLine().FindStringSubmatch(fresh[0]); now != nil {
			space := ""
			if comment := f.root.Content[at+1].LineComment; comment != "" {
				before := strings.TrimSuffix(t.lines[first], comment)
				space = before[len(strings.TrimRight(before, " \t")):] + comment
				now[2] = strings.TrimSpace(strings.TrimSuffix(now[2], comment))
			}
			fresh[0] = old[1] + now[2] + space
		}
	}
	t.lines = slices.Replace(t.lines, first, end, fresh...)
	return t.join(), nil
}

// valueLine parts a line with a key into all before the value, and the rest.
var valueLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\s*["']?[a-z_]+["']?\s*:\s+)(.*)$`) })

// encode is the file as a whole, written anew.
func (f *userFile) encode(key string, change func(*yaml.Node)) ([]byte, error) {
	var doc yaml.Node
	if f.root == nil {
		doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	} else if err := yaml.Unmarshal(f.data, &doc); err != nil {
		return nil, err
	}
	change(doc.Content[0])
	out, err := encode(&doc)
	if err == nil {
		if _, bad := f.reader().parse(out); bad != nil {
			return nil, &Error{Source: Source{Origin: FromUser, File: f.path}, Key: key, Reason: "cannot be changed by itself"}
		}
	}
	return out, err
}

func encode(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err := enc.Encode(n)
	return out.Bytes(), errors.Join(err, enc.Close())
}

// means tells whether a text has val for the key, nothing for nil, and for all
// other keys what the file has.
func (f *userFile) means(out []byte, key string, val *yaml.Node) error {
	root, bad := f.reader().parse(out)
	if bad != nil {
		return bad
	}
	var want, got []*yaml.Node
	if f.root != nil {
		want = f.root.Content
	}
	if root != nil {
		got = root.Content
	}
	done := val == nil
	for i := 0; i+1 < len(want); i += 2 {
		expect := want[i+1]
		if want[i].Value == key {
			if val == nil {
				continue
			}
			if !done {
				expect, done = val, true
			}
		}
		if len(got) < 2 || got[0].Value != want[i].Value || !same(got[1], expect) {
			return errLines
		}
		got = got[2:]
	}
	if !done {
		if len(got) < 2 || got[0].Value != key || !same(got[1], val) {
			return errLines
		}
		got = got[2:]
	}
	if len(got) > 0 {
		return errLines
	}
	return nil
}

// same tells whether two nodes have the same value, however they are written.
func same(a, b *yaml.Node) bool {
	a, b = resolve(a), resolve(b)
	if a.Kind != b.Kind || a.Value != b.Value || a.ShortTag() != b.ShortTag() {
		return false
	}
	return slices.EqualFunc(a.Content, b.Content, same)
}

// text is a file as lines without their ends.
type text struct {
	mark  string // of the byte order, before the first line
	end   string // of a line
	lines []string
}

func split(data []byte) text {
	t := text{end: "\n"}
	s := string(data)
	if rest, ok := strings.CutPrefix(s, "\ufeff"); ok {
		t.mark, s = "\ufeff", rest
	}
	if strings.Contains(s, "\r\n") {
		t.end = "\r\n"
	}
	t.lines = strings.Split(s, "\n")
	for i, l := range t.lines {
		t.lines[i] = strings.TrimSuffix(l, "\r")
	}
	return t
}

func (t text) join() []byte { return []byte(t.mark + strings.Join(t.lines, t.end)) }

// extent is the range of lines of a key and its value. Blank lines and comments
// that follow belong to what comes after them, unless they are further in.
func (t text) extent(root *yaml.Node, at int) (first, end int, err error) {
	key := root.Content[at]
	first, end = key.Line-1, len(t.lines)
	if at+2 < len(root.Content) {
		end = root.Content[at+2].Line - 1
	}
	if root.Style&yaml.FlowStyle != 0 || first < 0 || end <= first || end > len(t.lines) {
		return 0, 0, errLines
	}
	for end > first+1 {
		l := t.lines[end-1]
		bare := strings.TrimLeft(l, " \t")
		if bare != "" && (bare[0] != '#' || len(l)-len(bare) >= key.Column) {
			break
		}
		end--
	}
	return first, end, nil
}
