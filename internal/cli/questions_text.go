package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	wraps "github.com/jedib0t/go-pretty/v6/text"

	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// questionIndent is where the text of a question begins, under its heading.
const questionIndent = "  "

// printQuestions tells what waits: for each question its age, state and
// project, its text, and the command that answers it on a line of its own. It
// returns how many questions it told. That w cannot be written to is w's to know.
func (a *App) printQuestions(w io.Writer, home string, list []sessionQuestions, settled bool, now time.Time) int {
	p := questionPrinter{app: a, w: w, home: home, now: now}
	for _, q := range list {
		for _, w := range q.Waits {
			p.wait(q, w)
		}
		for _, active := range q.Active {
			p.active(q, active)
		}
		if settled {
			for _, s := range q.Settled {
				p.settled(q, s)
			}
		}
	}
	return p.count
}

type questionPrinter struct {
	app   *App
	w     io.Writer
	home  string
	now   time.Time
	count int // printed so far
}

func (p *questionPrinter) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.w, format, args...) // as printQuestions says
}

func (p *questionPrinter) active(q sessionQuestions, active remote.ActiveQuestion) {
	state := active.State
	if active.Queued {
		state += ", its answer is queued"
	}
	p.heading(age(active.AskedAt, p.now), state, q)
	p.questions(q, active.Questions)
	words := []string{"answer", q.ref, active.CallID}
	if active.Queued {
		p.line("to take the answer back:")
		words = append(words, "--withdraw")
	}
	p.command(words...)
}

func (p *questionPrinter) wait(q sessionQuestions, w remote.Wait) {
	p.heading("now", string(w.Kind)+", the run waits", q)
	p.questions(q, w.Questions)
	if w.Kind.Permits() {
		p.line("answer it in the terminal of the run; if that has --answerer remote, also with:")
	}
	p.command("attach", q.ref)
}

func (p *questionPrinter) settled(q sessionQuestions, s remote.SettledQuestion) {
	p.heading(s.CallID, string(session.QuestionSettled), q)
	for _, answer := range s.Answers {
		p.line(answer.ID + ": " + answerWords(answer))
	}
	if len(s.Answers) == 0 {
		p.line("the answer cannot be read")
	}
}

// answerWords is an answer on one line.
func answerWords(answer session.Answer) string {
	words := answer.Selected
	if answer.Custom != "" {
		words = append(words[:len(words):len(words)], answer.Custom)
	}
	if len(words) == 0 {
		return "skipped"
	}
	return strings.Join(words, ", ")
}

func (p *questionPrinter) heading(age, state string, q sessionQuestions) {
	if p.count > 0 {
		p.printf("\n")
	}
	p.count++
	a := p.app
	p.printf("%s\n", a.fit(strings.Join([]string{age, state, a.folder(q.cwd)}, "  ")))
}

func (p *questionPrinter) questions(of sessionQuestions, questions []session.Question) {
	for _, q := range questions {
		text := q.Question
		if q.Header != "" {
			text = q.Header + ": " + text
		}
		p.line(text)
		for _, l := range detailLines(q.Detail, questionIndent, p.app.command(p.home, "questions", of.ref, "--json")) {
			p.printf("%s\n", l)
		}
		if len(q.Options) == 0 {
			continue
		}
		labels := make([]string, len(q.Options))
		for i, o := range q.Options {
			labels[i] = oneLine(o.Label)
		}
		kind := "one of: "
		if q.MultiSelect {
			kind = "any of: "
		}
		p.line(questionIndent + kind + strings.Join(labels, " | "))
	}
}

// line prints text that belongs to the question, wrapped on a terminal.
func (p *questionPrinter) line(text string) {
	indent := questionIndent + text[:len(text)-len(strings.TrimLeft(text, " "))]
	for _, l := range p.app.wrap(oneLine(text), indent) {
		p.printf("%s%s\n", indent, strings.TrimRight(l, " "))
	}
}

// command prints a command whole, to be copied.
func (p *questionPrinter) command(words ...string) {
	p.printf("%s%s\n", questionIndent, p.app.visible(p.app.command(p.home, words...)))
}

// folder is a working directory as a person knows it. In a pipe it is exact.
func (a *App) folder(dir string) string {
	if !a.OutTerminal() {
		return dir
	}
	if home := a.Getenv("HOME"); home != "" {
		if rest, ok := strings.CutPrefix(dir, home); ok && (rest == "" || rest[0] == '/') {
			dir = "~" + rest
		}
	}
	return view.OneLine(dir)
}

// fit makes a line that a terminal shows on one line; in a pipe it is whole.
func (a *App) fit(line string) string {
	if !a.OutTerminal() {
		return line
	}
	return view.Fit(view.Visible(line), a.Width()-1, a.ellipsis())
}

func (a *App) ellipsis() string {
	if a.UTF8() {
		return "…"
	}
	return "..."
}

// wrap breaks a text into the lines that a terminal has room for behind the
// indent. In a pipe it stays one line.
func (a *App) wrap(text, indent string) []string {
	if !a.OutTerminal() {
		return []string{text}
	}
	return strings.Split(wraps.WrapSoft(view.Visible(text), max(a.Width()-1-len(indent), 20)), "\n")
}

// oneLine is text without line breaks and runs of spaces, otherwise exact.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
