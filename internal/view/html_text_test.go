package view

import (
	"reflect"
	"strings"
	"testing"
)

func TestCodeFencesPartAText(t *testing.T) {
	prose := func(s string) passage { return passage{false, s} }
	code := func(s string) passage { return passage{true, s} }
	for text, want := range map[string][]passage{
		"":                               nil,
		"\n\n":                           nil,
		"a\n\nb":                         {prose("a\n\nb")},
		"a\n```go\n\tx\n```\nb":          {prose("a"), code("\tx"), prose("b")},
		"```\ncut off":                   {code("cut off")},
		"~~~\n```\n~~~\nb":               {code("```"), prose("b")},
		"````\n```\nx\n```\n````":        {code("```\nx\n```")},
		"use ```x``` here":               {prose("use ```x``` here")},
		"```x``` begins":                 {prose("```x``` begins")},
		"```\n```go is no end\n```\nend": {code("```go is no end"), prose("end")},
		"1. x\n   ```sh\n   ls\n   ```":  {prose("1. x"), code("   ls")},
		"```\r\nx\r\n```\r\nb":           {code("x\r"), prose("b")},
	} {
		if got := passages(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func FuzzPassagesLoseNothingButFences(f *testing.F) {
	f.Add("a\n```go\n\tx\n```\nb")
	f.Add("~~~\n```\n")
	f.Fuzz(func(t *testing.T, text string) {
		rest := text
		for _, p := range passages(text) {
			_, after, found := strings.Cut(rest, p.Text)
			if !found {
				t.Fatalf("%q is not in %q", p.Text, rest)
			}
			rest = after
		}
	})
}

func TestAPageSaysFirstWhatWaits(t *testing.T) {
	page := func(l *logged, live bool) string {
		var b strings.Builder
		o := HTMLOptions{Answer: func(id string) string { return "deepseek answer S " + id }}
		if err := WriteHTML(&b, l.build(live, HTMLBound), o); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := page(newLogged(t).task("x").says("", "", askCall), true); strings.Contains(got, "without an answer") || strings.Contains(got, "answer with") {
		t.Error("a question that was not asked yet is offered")
	}
	got := page(newLogged(t).task("x").says("", "", askCall).does(askCall, "", pending(t, askCall.ID), nil).completes(), false)
	for _, want := range []string{"1 question without an answer", `href="#question-` + askCall.ID, `id="question-` + askCall.ID, "<code>deepseek answer S " + askCall.ID} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
