package view

import (
	"strings"
	"time"

	"deepseek/internal/session"
)

// ToolStarted says that a call has begun, and when: not always now, for who
// comes to a run that is under way.
func (s *Screen) ToolStarted(id, name, arguments string, at time.Time) {
	s.locked(func() {
		s.think = time.Time{}
		s.endText()
		s.lastOK = false
		t := running{name: OneLine(name), title: CallTitle(arguments), since: at, number: len(s.tools)}
		s.tools[id] = t
		defer s.begun(id)
		if s.o.Verbose && !s.o.Quiet {
			s.line(s.style.dim.Sprint(s.fit("  "+t.name+" "+t.title, 0)))
		}
		s.nudge()
	})
}

// Outcome is how a tool call ended.
type Outcome struct {
	Code   string        // "" = success
	Words  string        // instead of ok, such as "exit 1"; of a question "pending" is read off the result
	Took   time.Duration // 0 = from ToolStarted to At
	At     time.Time     // zero = now
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
		if o.At.IsZero() {
			o.At = time.Now()
		}
		if o.Took == 0 && ok {
			o.Took = o.At.Sub(t.since)
		}
		s.endText()
		s.lastOK = false
		s.begun(id)
		defer s.follow(id)
		if s.o.Quiet {
			return
		}
		if t.name == session.AskTool && o.Code == "" && o.Words == "" {
			if _, pending := session.ParsePending(o.Result); pending {
				o.Words = "pending"
			}
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
	tail := "  " + paint.Sprint(words)
	room := s.o.Width() - width("- "+"  "+words)
	if o.Took > 0 || !t.since.IsZero() { // else it never began
		took := Took(o.Took)
		tail += "  " + s.style.dim.Sprint(took)
		room -= width("  " + took)
	}
	name := Fit(t.name, max(room, 8), s.ellipsis())
	line := s.bullet() + " " + s.style.bold.Sprint(name)
	const least = 6 // columns that a title is worth showing in
	if room -= width(name + " "); t.title != "" && room >= least {
		line += " " + fitWords(t.title, room, s.ellipsis())
	}
	return line + tail
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
