package question

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"deepseek/internal/session"
)

// Script is a list of prepared answers. It is immutable.
type Script struct {
	entries []scripted
}

// scripted is one entry: which questions it takes, and what it says to them.
type scripted struct {
	place            string // "FILE:LINE: entry N", for errors
	id               *string
	header, question *regexp.Regexp // nil: any
	selected         []string
	custom           string
}

// maxScript bounds a file of answers, in bytes.
const maxScript = 8 << 20

// LoadAnswers reads a file of answers: a YAML list of
// {match: {id?, header?, question?}, select?: [labels], custom?, skip?}, where
// header and question are regular expressions. An error names entry and line.
func LoadAnswers(path string) (*Script, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("scripted answers: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("scripted answers: %w", err)
	}
	if len(data) > maxScript {
		return nil, fmt.Errorf("scripted answers: %s is larger than %d bytes", path, maxScript)
	}
	return parseAnswers(filepath.Base(path), data)
}

func parseAnswers(name string, data []byte) (*Script, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: no answers in it; it is a list of {match, select|custom|skip}", name)
		}
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one YAML document in it", name)
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s: no answers in it; it is a list of {match, select|custom|skip}", name)
	}
	list := doc.Content[0]
	if list.Kind != yaml.SequenceNode {
		return nil, fmt.Errorf("%s:%d: want a list of {match, select|custom|skip}", name, list.Line)
	}
	s := &Script{}
	for i, n := range list.Content {
		e := scripted{place: fmt.Sprintf("%s:%d: entry %d", name, n.Line, i+1)}
		if err := e.read(name, n); err != nil {
			return nil, err
		}
		s.entries = append(s.entries, e)
	}
	return s, nil
}

func (e *scripted) read(name string, n *yaml.Node) error {
	fault := func(at *yaml.Node, format string, args ...any) error {
		_, entry, _ := strings.Cut(e.place, ": ")
		return fmt.Errorf("%s:%d: %s: %s", name, at.Line, entry, fmt.Sprintf(format, args...))
	}
	var matched, skip bool
	var custom *string
	err := fields(n, fault, map[string]func(*yaml.Node) error{
		"match": func(v *yaml.Node) error {
			matched = true
			return fields(v, fault, map[string]func(*yaml.Node) error{
				"id":       func(v *yaml.Node) error { return text(v, fault, "match.id", &e.id) },
				"header":   func(v *yaml.Node) error { return expression(v, fault, "match.header", &e.header) },
				"question": func(v *yaml.Node) error { return expression(v, fault, "match.question", &e.question) },
			})
		},
		"select": func(v *yaml.Node) error {
			if v.Kind != yaml.SequenceNode || len(v.Content) == 0 {
				return fault(v, "select: want a list of labels")
			}
			for _, item := range v.Content {
				var label *string
				if err := text(item, fault, "select", &label); err != nil {
					return err
				}
				e.selected = append(e.selected, *label)
			}
			return nil
		},
		"custom": func(v *yaml.Node) error { return text(v, fault, "custom", &custom) },
		"skip": func(v *yaml.Node) error {
			if v.Decode(&skip) != nil || v.ShortTag() != "!!bool" {
				return fault(v, "skip: want true or false")
			}
			return nil
		},
	})
	switch {
	case err != nil:
		return err
	case !matched:
		return fault(n, "match is missing; {} matches every question")
	case custom != nil && *custom == "":
		return fault(n, "custom is empty; to answer nothing, write skip: true")
	case skip && (e.selected != nil || custom != nil):
		return fault(n, "skip stands alone, without select and custom")
	case !skip && e.selected == nil && custom == nil:
		return fault(n, "says nothing: give select, custom or skip: true")
	}
	if custom != nil {
		e.custom = *custom
	}
	return nil
}

type faultFunc func(at *yaml.Node, format string, args ...any) error

// fields reads a mapping whose keys are known, each once.
func fields(n *yaml.Node, fault faultFunc, known map[string]func(*yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return fault(n, "want a mapping")
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := known[key.Value]
		switch {
		case !ok:
			return fault(key, "unknown key %q", key.Value)
		case seen[key.Value]:
			return fault(key, "key %q stands twice", key.Value)
		}
		seen[key.Value] = true
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if err := read(value); err != nil {
			return err
		}
	}
	return nil
}

// text reads a scalar as it is written: a label may look like a number.
func text(n *yaml.Node, fault faultFunc, key string, into **string) error {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return fault(n, "%s: want a text", key)
	}
	*into = &n.Value
	return nil
}

func expression(n *yaml.Node, fault faultFunc, key string, into **regexp.Regexp) error {
	var source *string
	if err := text(n, fault, key, &source); err != nil {
		return err
	}
	re, err := regexp.Compile(*source)
	if err != nil {
		return fault(n, "%s: %v", key, err)
	}
	*into = re
	return nil
}

func (e *scripted) matches(q session.Question) bool {
	return (e.id == nil || *e.id == q.ID) &&
		(e.header == nil || e.header.MatchString(q.Header)) &&
		(e.question == nil || e.question.MatchString(q.Question))
}

// answer is what the script says to the questions; false where it has nothing
// to say to one of them, or the card is a permission. An error names the first
// entry whose answer does not fit the question that it matches.
func (s *Script) answer(c Card) (batch []session.Answer, ok bool, err error) {
	if c.Kind.Permits() {
		return nil, false, nil
	}
	ok = true
	for _, q := range c.Questions {
		e := s.entry(q)
		if e == nil {
			ok = false
			continue
		}
		a := session.Answer{ID: q.ID, Selected: append([]string{}, e.selected...), Custom: e.custom}
		if err := session.CheckBatch([]session.Question{q}, []session.Answer{a}); err != nil {
			return nil, false, fmt.Errorf("%s: %w", e.place, err)
		}
		batch = append(batch, a)
	}
	return batch, ok, nil
}

func (s *Script) entry(q session.Question) *scripted {
	for i := range s.entries {
		if s.entries[i].matches(q) {
			return &s.entries[i]
		}
	}
	return nil
}
