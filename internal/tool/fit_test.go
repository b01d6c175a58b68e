package tool

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"deepseek/internal/session"
)

type memSpill struct {
	fail    error
	content bytes.Buffer
	closed  bool
}

func (m *memSpill) Create(hint string) (SpillFile, error) {
	if m.fail != nil && hint == "create" {
		return nil, m.fail
	}
	return m, nil
}

func (m *memSpill) Write(p []byte) (int, error) {
	if m.fail != nil {
		return 0, m.fail
	}
	return m.content.Write(p)
}
func (m *memSpill) Close() error { m.closed = true; return nil }
func (m *memSpill) Path() string { return "/spill/one.txt" }
func (m *memSpill) Name() string { return "one.txt" }

func TestFitLeavesWhatFits(t *testing.T) {
	s := &memSpill{}
	in := strings.Repeat("x", MaxContent)
	if got := Fit(Result{Content: in}, s, "c"); got.Content != in || got.Meta != nil || s.content.Len() != 0 {
		t.Fatal("a result of exactly the limit was touched")
	}
}

func TestFitCutsTheMiddleOnRunesAndNamesTheSpillFile(t *testing.T) {
	for _, unit := range []string{"x", "é", "世", "😀"} {
		s := &memSpill{}
		in := "HEAD" + strings.Repeat(unit, 60_000) + "TAIL"
		got := Fit(Result{Content: in, Meta: &session.ToolMeta{Path: "p"}}, s, "c")
		if len(got.Content) > MaxContent || !utf8.ValidString(got.Content) {
			t.Fatalf("%s: %d bytes, valid %v", unit, len(got.Content), utf8.ValidString(got.Content))
		}
		if !strings.HasPrefix(got.Content, "HEAD") || !strings.HasSuffix(got.Content, "TAIL") || !strings.Contains(got.Content, "the whole is in /spill/one.txt") {
			t.Fatalf("%s: head, tail or name missing", unit)
		}
		if got.Meta.Spill != "one.txt" || got.Meta.Path != "p" || s.content.String() != in || !s.closed {
			t.Fatalf("%s: the whole was not kept: %+v", unit, got.Meta)
		}
	}
}

func TestFitSaysWhenTheWholeIsNotKept(t *testing.T) {
	long := strings.Repeat("x", 2*MaxContent)
	full := errors.New("no space left on device")
	for _, c := range []struct {
		name, hint, want string
		spill            Spill
		meta             *session.ToolMeta
	}{
		{"no folder", "c", "the whole was not kept", nil, nil},
		{"create fails", "create", "could not be kept: no space left on device", &memSpill{fail: full}, nil},
		{"write fails", "c", "could not be kept: no space left on device", &memSpill{fail: full}, nil},
		{"the tool kept it", "c", "in the file named in this result", &memSpill{}, &session.ToolMeta{Spill: "own.txt"}},
	} {
		got := Fit(Result{Content: long, Meta: c.meta}, c.spill, c.hint)
		if !strings.Contains(got.Content, c.want) || len(got.Content) > MaxContent {
			t.Errorf("%s: %d bytes", c.name, len(got.Content))
		}
		if (got.Meta == nil) != (c.meta == nil) {
			t.Errorf("%s: meta %+v", c.name, got.Meta)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "plain\t\r\n": "plain\t\r\n", "世界": "世界", "a\xffb": `a\xFFb`, "\xe4\xb8": `\xE4\xB8`, "a\x00b": `a\x00b`, "\uFFFD": "\uFFFD",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestFitLeavesTheTextOfAToolThatCutItItself(t *testing.T) {
	r := Result{Content: strings.Repeat("x", 65_000), Limit: 66_000}
	if got := Fit(r, nil, ""); got.Content != r.Content {
		t.Errorf("%d bytes", len(got.Content))
	}
	r.Content += r.Content
	if got := Fit(r, nil, ""); len(got.Content) > 66_000 || len(got.Content) < 65_000 {
		t.Errorf("%d bytes", len(got.Content))
	}
}
