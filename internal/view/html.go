package view

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"deepseek/internal/session"
)

//go:embed html_page.tmpl
var htmlPage string

// HTMLBound is the Bound for HTML: a page stays one that a browser can show.
func HTMLBound(s string) string { return Excerpt(s, 1000, 48<<10) }

// htmlFuncs are what the page calls. Everything that comes from a session goes
// through v, which makes control characters visible; escaping is the template's.
var htmlFuncs = template.FuncMap{
	"v":        Visible,
	"clock":    func(int64) string { return "" }, // replaced for each page
	"count":    count,
	"ending":   (*Turn).ending,
	"outcome":  (*Item).outcome,
	"standing": (*Item).standing,
	"from":     (*Item).from,
	"titled":   titled,
	"title":    func(i *Item) string { return Fit(i.title, 160, "…") },
	"notes":    notes,
	"tone":     tone,
	"waits":    (*Item).waits,
	"wanted":   (*Item).answerable,
	"readable": func(i *Item) bool { return i.Answers != nil },
	"unreadable": func(i *Item) bool {
		return i.Answers != nil && len(i.Answers) == 0
	},
	"chosen": func(label string, a *session.Answer) bool { return a != nil && slices.Contains(a.Selected, label) },
	"answer": func(q session.Question, i *Item) *session.Answer {
		if a, ok := answerOf(q.ID, i.Answers); ok {
			return &a
		}
		return nil
	},
	"arguments": arguments,
	"passages":  passages,
	"waiting":   waiting,
	"command":   func(string) string { return "" }, // replaced for each page
	"diff": func(i *Item) []diffLine {
		if i.Meta == nil {
			return nil
		}
		return diffLines(i.Meta.Diff)
	},
}

// htmlTemplate is parsed when a page is wanted, not when any command starts.
var htmlTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Funcs(htmlFuncs).Parse(htmlPage))
})

// HTMLOptions say how a transcript is written as a page.
type HTMLOptions struct {
	Location *time.Location             // of times; nil = UTC
	Answer   func(callID string) string // the command that answers a question; may be nil
}

// WriteHTML writes a transcript as one page that needs no script and nothing
// from the network.
func WriteHTML(w io.Writer, t *Transcript, o HTMLOptions) error {
	at, answer := o.Location, o.Answer
	if at == nil {
		at = time.UTC
	}
	if answer == nil {
		answer = func(string) string { return "" }
	}
	page, err := htmlTemplate().Clone()
	if err != nil {
		return err
	}
	page.Funcs(template.FuncMap{"clock": func(ms int64) string {
		return time.UnixMilli(ms).In(at).Format("2006-01-02 15:04:05 MST")
	}, "command": answer})
	out := bufio.NewWriterSize(w, 32<<10)
	if err := page.Execute(out, t); err != nil {
		return err
	}
	return out.Flush()
}

// arguments shows the arguments of a call a field at a time, texts as what they
// say; as they are where they are no whole JSON object.
func arguments(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') || !json.Valid([]byte(raw)) {
		return raw
	}
	var b strings.Builder
	for dec.More() {
		var value json.RawMessage
		key, err := dec.Token()
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return raw
		}
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = s
		}
		if strings.Contains(text, "\n") {
			text = "\n" + text
		}
		fmt.Fprintf(&b, "%s: %s\n", key, text)
	}
	return strings.TrimRight(b.String(), "\n")
}

// tone is the class of a call's name and of where a question stands.
func tone(i *Item) string {
	switch {
	case i.failed():
		return "bad"
	case i.Kind == KindQuestion && i.waits(), i.Kind == KindTool && !i.ended:
		return "warn"
	case i.Kind == KindQuestion && i.State == StateRemoved:
		return "dim"
	}
	return "good"
}

// waiting are the questions of a transcript that an answer is wanted for.
func waiting(t *Transcript) []*Item {
	var list []*Item
	for _, turn := range t.Turns {
		for _, i := range turn.Items {
			if i.answerable() {
				list = append(list, i)
			}
		}
	}
	return list
}

// notes tells whether a group holds notes.
func notes(group []*Item) bool {
	return slices.ContainsFunc(group, func(i *Item) bool { return i.Kind == KindNote })
}
