package cli

import (
	"fmt"
	"os"
	"strings"

	"deepseek/internal/config"
	"deepseek/internal/engine"
	"deepseek/internal/prompt"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// show is what a run shows: the work on stderr, the result on stdout, in the
// format that was asked for.
type show struct {
	o      *owner
	format string
	fresh  bool // the session begins with this run
	screen *view.Screen
	echo   *prompt.Echo
	told   engine.Status // the last that a reader of stream-json knows of
}

func newShow(o *owner) *show {
	a := o.app
	echo := a.echo()
	// A run begins idle, which is no change.
	return &show{o: o, told: engine.Idle, format: o.cfg.Output, fresh: o.log.file() == nil, echo: echo, screen: view.NewScreen(a.Err, view.ScreenOptions{
		Terminal: a.ErrTerminal(), Cursor: a.Cursor(), Colour: a.Colour(o.cfg), ASCII: !a.UTF8(),
		Width: a.Width, Quiet: o.cfg.Quiet, Verbose: o.cfg.Verbose, Echo: echo,
		Background: background(a.streams.Err),
	})}
}

// echo switches whether the terminal shows what is typed; nil without one.
func (a *App) echo() *prompt.Echo {
	if f, ok := a.streams.In.(*os.File); ok && a.InTerminal() {
		return prompt.NewEcho(f, a.guard)
	}
	return nil
}

// streams tells whether text is wanted as it streams.
func (s *show) streams() bool {
	return s.format == "stream-json" || s.o.app.ErrTerminal() && !s.o.cfg.Quiet
}

// begin shows which session it is.
func (s *show) begin() {
	s.screen.Session(s.o.header.ID)
	if s.format == "stream-json" {
		s.line(s.o.log.file().HeaderLine())
	}
}

func (s *show) line(raw []byte) {
	_, _ = s.o.app.Out.Write(append(raw[:len(raw):len(raw)], '\n')) // a failure is kept in Out
}

// object prints a value as one line.
func (s *show) object(v any) {
	raw, err := session.Marshal(v)
	if err != nil { // values of our own types: JSON holds them all
		s.screen.Error(err.Error())
		return
	}
	s.line(raw)
}

func (s *show) event(l engine.Line) {
	if s.format == "stream-json" {
		s.line(l.Raw)
	}
	if e, err := decodeLine(l); err == nil { // the log checked it
		s.screen.Event(e)
	}
}

func (s *show) status(st engine.Status) {
	if s.format == "stream-json" && st != s.told {
		s.told = st
		s.object(struct {
			Type      string        `json:"type"`
			SessionID string        `json:"sessionId"`
			Status    engine.Status `json:"status"`
		}{"status", s.o.header.ID, st})
	}
}

func (s *show) delta(d engine.Delta) {
	if s.format == "stream-json" {
		s.object(struct {
			Type      string `json:"type"`
			SessionID string `json:"sessionId"`
			Kind      string `json:"kind"`
			Text      string `json:"text"`
		}{"delta", s.o.header.ID, d.Kind, d.Text})
	}
	s.screen.Delta(d.Kind, d.Text)
}

// result prints how the interval ended, and returns the failure for the exit code.
func (s *show) result(res *session.RunResult, failed error) error {
	var code *Coded
	if failed != nil {
		code = failure(failed)
		copied := *code
		code = &copied
		res.Error = &session.ErrorInfo{Code: code.Code, Message: code.Message}
	}
	if res.Questions == nil {
		res.Questions = []session.OpenQuestion{}
	}
	switch {
	case res.SessionID == "" || code != nil && code.Exit == ExitUsage:
		// It did not come to an interval: Main tells.
		return failed
	case s.format == "text":
		s.text(res.FinalResponse)
	case s.format == "json":
		s.object(res)
	default:
		s.object(struct {
			Type string `json:"type"`
			*session.RunResult
		}{"result", res})
	}
	s.summary(res)
	if code == nil {
		return nil
	}
	code.Printed = true
	return code
}

// text prints the final response, unless the terminal has it already.
func (s *show) text(text string) {
	a := s.o.app
	if text == "" || a.OneTerminal() && s.screen.LastText() == text {
		return
	}
	if a.OutTerminal() {
		text = view.Visible(text)
	}
	_, _ = a.Out.WriteString(text) // a failure is kept in Out
	_, _ = a.Out.WriteString("\n")
}

func (s *show) summary(res *session.RunResult) {
	finish := ""
	if res.FinishReason != nil {
		finish = *res.FinishReason
	}
	s.screen.Summary(view.Total{
		SessionID: s.o.header.ID, FinishReason: finish, Steps: res.Steps, Usage: res.Usage, Denied: res.Denied, Took: took(res),
	})
}

// next hints at what can be done now, to who sits at the terminal: answer what
// waits, and after the first run of a session how one goes on and reads it back.
func (s *show) next(res *session.RunResult) {
	a, home := s.o.app, s.o.cfg.Home
	if !a.ErrTerminal() || s.format != "text" {
		return
	}
	var waiting []string // commands
	for _, q := range res.Questions {
		if !q.Queued {
			waiting = append(waiting, q.Answer)
		}
	}
	switch n := len(waiting); {
	case n == 1:
		s.screen.Hint("1 question waits", waiting[0])
	case n > 1:
		s.screen.Hint(fmt.Sprintf("%d questions wait", n), a.command(home, "questions", s.o.ref))
	case s.fresh:
		words, which := []string{"run", "-c"}, "last"
		if a.global.cwd != "" { // the last session of where the next command is typed is another
			words, which = []string{"run", "--session", s.o.ref}, s.o.ref
		}
		if s.o.cfg.Source("model").Origin == config.FromFlag { // which the next run does not know
			words = append(words, "--model", s.o.cfg.Model)
		}
		s.screen.Hint("go on", a.command(home, words...)+" TASK")
		s.screen.Hint("read it", a.command(home, "show", which))
	}
}

func (s *show) close() { s.screen.Close() }

// UTF8 tells whether the locale can show more than ASCII.
func (a *App) UTF8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := a.Getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return true // none is set: containers and CI, whose viewers show UTF-8
}
