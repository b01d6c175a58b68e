package view

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"deepseek/internal/session"
)

// TextOptions say how a transcript is written as text. The zero value is for a
// pipe: bytes are exact, lines as long as they are.
type TextOptions struct {
	Expand   bool // show what groups hold
	Terminal bool // make untrusted text visible
	Colour   bool
	ASCII    bool
	Width    int                        // columns to wrap at; 0 = not
	Location *time.Location             // of times; nil = UTC
	Answer   func(callID string) string // the command that answers a question; may be nil
}

// TextBound is the Bound for text: what is folded away is not kept at all.
func TextBound(expand bool) Bound {
	if !expand {
		return func(string) string { return "" }
	}
	return func(s string) string { return Excerpt(s, 24, 4<<10) }
}

// WriteText writes a transcript. Every line of a folded one stands in the
// expanded one too. What w fails with ends it.
func WriteText(w io.Writer, t *Transcript, o TextOptions) error {
	if o.Location == nil {
		o.Location = time.UTC
	}
	p := &page{w: bufio.NewWriterSize(w, 32<<10), o: o, style: newStyle(o.Colour)}
	p.head(t)
	for _, turn := range t.Turns {
		if p.err != nil {
			return p.err
		}
		p.turn(turn)
	}
	if len(t.Queued) > 0 {
		p.heading("queued, not taken by a turn yet")
		for _, i := range t.Queued {
			p.item(i)
		}
	}
	if p.err != nil {
		return p.err
	}
	return p.w.Flush()
}

// page writes lines. Its first error stays.
type page struct {
	w     *bufio.Writer
	o     TextOptions
	style style
	err   error
}

// paint colours one line.
type paint func(...any) string

// put writes text. Its first line stands behind the prefix, the others behind
// as many columns, or behind the prefix again where that marks a quotation.
func (p *page) put(prefix, text string, colour paint) {
	if p.o.Terminal {
		text = Visible(text)
	}
	hang := prefix
	if !strings.ContainsAny(prefix, ">~|") {
		hang = strings.Repeat(" ", width(prefix))
	}
	for line := range strings.SplitSeq(text, "\n") {
		if p.o.Width <= 0 {
			p.emit(prefix+line, colour)
			prefix = hang
			continue
		}
		// Beside a deep prefix a few columns are left at least: the terminal wraps the rest.
		for _, l := range wrapLine(strings.ReplaceAll(line, "\t", "    "), max(p.o.Width-width(prefix), 10)) {
			p.emit(prefix+l, colour)
			prefix = hang
		}
	}
}

// command writes words and a command behind them, or below them where it does not
// fit. It is never broken, so that it can be copied.
func (p *page) command(words, command string) {
	if p.o.Terminal {
		command = Visible(command)
	}
	if p.o.Width <= 0 || width(words+" "+command) <= p.o.Width {
		p.emit(words+" "+command, p.style.dim.Sprint)
		return
	}
	p.emit(words, p.style.dim.Sprint)
	p.emit("    "+command, p.style.dim.Sprint)
}

func (p *page) emit(line string, colour paint) {
	if p.err != nil {
		return
	}
	if colour != nil && line != "" {
		line = colour(line)
	}
	if _, p.err = p.w.WriteString(line); p.err == nil {
		p.err = p.w.WriteByte('\n')
	}
}

// sign is a character for terminals that show more than ASCII, or its stand-in.
func (p *page) sign(s, ascii string) string {
	if p.o.ASCII {
		return ascii
	}
	return s
}

func (p *page) clock(ms int64) string {
	return time.UnixMilli(ms).In(p.o.Location).Format("2006-01-02 15:04:05")
}

func (p *page) head(t *Transcript) {
	p.emit("session "+OneLine(t.SessionID), p.style.bold.Sprint) // whole, to be copied
	p.put("", "begun "+p.clock(t.Header.CreatedAt)+" in "+OneLine(t.Header.Cwd), p.style.dim.Sprint)
	if h := t.Header; h.ParentSession != "" {
		what := "continues session "
		if h.Origin == session.OriginSubagent {
			what = "sub-agent of session "
		}
		p.put("", what+OneLine(h.ParentSession), p.style.dim.Sprint)
	}
	if t.Live {
		p.put("", "a run is at work on it", p.style.dim.Sprint)
	}
}

func (p *page) heading(text string) {
	p.emit("", nil)
	p.put(p.sign("── ", "-- "), text, p.style.bold.Sprint)
}

func (p *page) turn(t *Turn) {
	dot := p.sign(" · ", " - ")
	p.heading(fmt.Sprintf("turn %d%s%s%s%s%s%s", t.Turn, dot, t.ending(), dot, count(t.Steps, "step"), dot, p.clock(t.Time)))
	for _, part := range t.Parts() {
		if part.Item != nil {
			p.item(part.Item)
			continue
		}
		if part.Summary != "" {
			p.put("  ", p.ascii(part.Summary), p.style.dim.Sprint)
		}
		if p.o.Expand {
			for _, i := range part.Group {
				p.member(i)
			}
		}
	}
}

func (p *page) ascii(s string) string {
	if p.o.ASCII {
		return strings.ReplaceAll(s, " ×", " x")
	}
	return s
}

// item writes an item that stands for itself.
func (p *page) item(i *Item) {
	switch i.Kind {
	case KindUser:
		if who := i.from(); who != "" {
			p.put("> ", "["+who+"]", p.style.dim.Sprint)
		}
		p.put("> ", strings.TrimSuffix(i.Text, "\n"), nil)
	case KindAssistant:
		p.put("", strings.TrimSuffix(i.Text, "\n"), nil)
		if i.Interrupted {
			p.put("", "[cut off here]", p.style.warn.Sprint)
		}
	case KindQuestion:
		p.question(i)
	case KindReply:
		p.reply(i)
	default:
		first, rest, _ := strings.Cut(i.Text, "\n")
		p.put(p.sign("  · ", "  - "), first, p.style.warn.Sprint)
		if rest != "" && p.o.Expand {
			p.put("      ", rest, p.style.dim.Sprint)
		}
	}
}

// member writes an item of an opened group.
func (p *page) member(i *Item) {
	dim := p.style.dim.Sprint
	switch i.Kind {
	case KindTool:
		p.call(i)
	case KindAssistant:
		if i.Reasoning != "" {
			p.put("    ~ ", strings.TrimSpace(i.Reasoning), dim)
		}
		if i.Text != "" {
			p.put("    ", strings.TrimSuffix(i.Text, "\n"), nil)
		}
		if i.Interrupted && i.Text != "" {
			p.put("    ", "[cut off here]", p.style.warn.Sprint)
		}
	case KindUser:
		p.put("    > ", "["+i.from()+"]", dim)
		p.put("    > ", strings.TrimSuffix(i.Text, "\n"), dim)
	default:
		first, rest, _ := strings.Cut(i.Text, "\n")
		p.put(p.sign("    · ", "    - "), first, dim)
		if rest != "" {
			p.put("      ", rest, dim)
		}
	}
}

// call writes a call with what it gave.
func (p *page) call(i *Item) {
	indent := "    "
	if i.Parent != "" {
		indent = "      "
	}
	name, most := OneLine(i.Name), p.o.Width
	if most <= 0 {
		most = 200
	}
	tail := i.outcome()
	if tail != "" {
		tail = p.sign(" · ", " - ") + tail
	}
	text, title := name, ""
	if i.title != "" {
		title = fitWords(i.title, max(most-width(indent+name+tail)-1, 12), p.sign("…", "..."))
		text += " " + title
	}
	colour := paint(p.style.good.Sprint)
	switch {
	case i.failed():
		colour = p.style.bad.Sprint
	case !i.ended:
		colour = p.style.warn.Sprint
	}
	p.put(indent, text+tail, colour)
	if given := strings.Trim(i.given, "\n"); given != "" && given != title {
		p.put(indent+"    | ", given, nil)
	}
	body := i.Result
	if i.Meta != nil && i.Meta.Diff != "" && !i.failed() {
		body = i.Meta.Diff
	}
	if body = strings.Trim(body, "\n"); body != "" {
		p.put(indent+"    ", body, p.style.dim.Sprint)
	}
}

// question writes a question with what became of it.
func (p *page) question(i *Item) {
	colour := paint(p.style.bold.Sprint)
	if i.waits() {
		colour = p.style.warn.Sprint
	}
	p.put("? ", OneLine(i.CallID)+p.sign(" · ", " - ")+i.standing(), colour)
	for _, q := range i.Questions {
		p.put("  ", titled(q), nil)
		a, answered := answerOf(q.ID, i.Answers)
		for _, o := range q.Options {
			mark, paint := "    ( ) ", paint(nil)
			if slices.Contains(a.Selected, o.Label) {
				mark, paint = "    (x) ", p.style.good.Sprint
			}
			text := o.Label
			if o.Description != "" {
				text += ": " + o.Description
			}
			p.put(mark, text, paint)
		}
		p.given("    ", a, answered, true)
	}
	if i.Answers != nil && len(i.Answers) == 0 {
		p.put("    ", "(the answer cannot be read)", p.style.warn.Sprint)
	}
	if i.State == StateRemoved && i.Result != "" && p.o.Expand {
		p.put("      ", i.Result, p.style.dim.Sprint)
	}
	if i.answerable() && p.o.Answer != nil {
		p.command("  answer with:", p.o.Answer(i.CallID))
	}
}

// given writes what an answer holds besides the options that are marked, or
// with them where none is shown.
func (p *page) given(indent string, a session.Answer, answered, marked bool) {
	good := p.style.good.Sprint
	if !marked {
		for _, label := range a.Selected {
			p.put(indent+"= ", label, good)
		}
	}
	switch {
	case a.Custom != "":
		p.put(indent+"= ", a.Custom, good)
	case answered && len(a.Selected) == 0:
		p.put(indent, "(skipped)", p.style.dim.Sprint)
	}
}

// reply writes a late answer: question and answer, or its raw text.
func (p *page) reply(i *Item) {
	p.put(p.sign("↳ ", "= "), "late answer to "+OneLine(i.CallID), p.style.good.Sprint)
	if i.Answers == nil {
		p.put("  ", i.Text, nil)
		return
	}
	for _, q := range i.Questions {
		p.put("  ", titled(q), nil)
		a, answered := answerOf(q.ID, i.Answers)
		p.given("    ", a, answered, false)
	}
}

// titled is a question with its header before it.
func titled(q session.Question) string {
	if q.Header == "" {
		return q.Question
	}
	return q.Header + ": " + q.Question
}
