package view

import (
	"strings"
	"time"
)

// ToolStarted says that a call has begun.
func (s *Screen) ToolStarted(id, name, arguments string) {
	s.locked(func() {
		s.think = time.Time{}
		s.endText()
		s.lastOK = false
		t := running{name: OneLine(name), title: CallTitle(arguments), since: time.Now(), number: len(s.tools)}
		s.tools[id] = t
		if s.o.Verbose && !s.o.Quiet {
			s.line(s.style.dim.Sprint(s.fit("  "+t.name+" "+t.title, 0)))
		}
		s.nudge()
	})
}

// Outcome is how a tool call ended.
type Outcome struct {
	Code   string        // "" = success
	Words  string        // instead of ok, such as "exit 1" or "pending"
	Took   time.Duration // 0 = since ToolStarted
	Result string        // what the model reads; its beginning is shown with -v
}

// ToolDone shows the line of a call. A call that was never started is named by
// what it is given here.
func (s *Screen) ToolDone(id, name, arguments string, o Outcome) {
	s.locked(func() {
		t, ok := s.tools[id]
		if !ok {
			t = running{name: OneLine(name), title: CallTitle(arguments)}
		}
		delete(s.tools, id)
		if o.Took == 0 && ok {
			o.Took = time.Since(t.since)
		}
		s.endText()
		s.lastOK = false
		if s.o.Quiet {
			return
		}
		s.line(s.toolLine(t, o))
		if s.o.Verbose {
			s.excerpt(o.Result)
		}
	})
}

func (s *Screen) toolLine(t running, o Outcome) string {
	words, paint := "ok", s.style.good
	if o.Words != "" {
		words, paint = OneLine(o.Words), s.style.warn
	}
	if o.Code != "" {
		words, paint = OneLine(o.Code), s.style.bad
	}
	took := Took(o.Took)
	room := s.o.Width() - width(t.name) - width(words) - width(took) - len("-  "+"  "+"  ")
	title := t.title
	if title != "" {
		title = " " + Fit(title, max(room, 8), s.ellipsis())
	}
	return s.bullet() + " " + s.style.bold.Sprint(t.name) + title + "  " + paint.Sprint(words) + "  " + s.style.dim.Sprint(took)
}

// excerpt shows the first lines of a result.
func (s *Screen) excerpt(result string) {
	const most = 8
	if result == "" {
		return
	}
	lines := strings.Split(strings.TrimRight(result[:min(len(result), 8<<10)], "\n"), "\n")
	for i, l := range lines {
		if i == most {
			s.line(s.style.dim.Sprint("    " + s.ellipsis()))
			return
		}
		s.line(s.style.dim.Sprint(s.fit("    "+strings.ReplaceAll(Visible(l), "\t", "  "), 0)))
	}
}
