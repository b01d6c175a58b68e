package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"deepseek/internal/view"
)

// watchEvery is how often --watch looks. Looking costs little where nothing has
// changed, and a question waits for seconds at the least.
const watchEvery = time.Second

// The rules of the terminal that --watch draws on:
//
//   - It changes no mode and hides nothing, so there is nothing to give back:
//     whatever ends it leaves the last list, with its commands to copy.
//   - The first drawing scrolls away what the screen held; every drawing begins
//     at the top left and erases to the end of each line and of the screen.
//   - A list that is higher than the screen is cut, and says so.
//
// Where the cursor cannot be moved the list is printed again, below the old one.
const (
	toTop     = "\x1b[H"
	eraseTail = "\x1b[K"
	eraseRest = "\x1b[J"
)

// watch shows what waits until ctx or a signal ends it, or nobody reads any more.
func (r *questionReader) watch(ctx context.Context) error {
	ctx, signals := Watch(ctx, r.a.Exit)
	defer signals.Stop()
	ticks := time.NewTicker(watchEvery)
	defer ticks.Stop()
	err := (&questionWatch{questionReader: r, now: time.Now}).until(ctx, ticks.C)
	if sig := (Signal{}); errors.As(context.Cause(ctx), &sig) {
		return &Coded{Exit: sig.Exit()} // the way to end it: nothing to say
	}
	return err
}

// questionWatch is a --watch at work. One goroutine's.
type questionWatch struct {
	*questionReader
	now func() time.Time

	drawn string   // what is on the screen
	told  string   // the same without ages, which change by themselves
	known []string // the questions that waited, once there was a first look
	shown bool     // there was
}

// until looks at once and at every tick.
func (w *questionWatch) until(ctx context.Context, ticks <-chan time.Time) error {
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		if w.a.Out.Gone() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks:
		}
	}
}

// look reads and, if something is different, draws.
func (w *questionWatch) look(ctx context.Context) error {
	found, notes, err := w.read(ctx)
	if err != nil {
		return err
	}
	found = w.drop(found)
	waiting := waitingIDs(found)
	come := w.shown && slices.ContainsFunc(waiting, func(id string) bool { return !slices.Contains(w.known, id) })
	w.known, w.shown = waiting, true
	if w.a.outCursor() {
		if text := w.text(found, notes, w.now()); text != w.drawn {
			w.draw(text)
		}
	} else if text := w.text(found, notes, time.Time{}); text != w.told {
		if w.told != "" {
			w.a.Printf("\n")
		}
		w.told = text
		w.a.Printf("%s", w.text(found, notes, w.now()))
	}
	if come && w.o.bell && w.a.OutTerminal() {
		w.a.Printf("\a")
	}
	return nil
}

// text is the list as it is shown.
func (w *questionWatch) text(found []sessionQuestions, notes []string, now time.Time) string {
	var b bytes.Buffer
	if w.a.printQuestions(&b, w.home, found, w.settled(), now) == 0 {
		b.WriteString(strings.Join(w.a.wrap("no question waits for an answer", ""), "\n") + "\n")
	}
	for _, n := range notes {
		b.WriteString("\n" + w.a.fit(n) + "\n")
	}
	return b.String()
}

func (w *questionWatch) draw(text string) {
	columns, rows := w.a.outSize()
	var b strings.Builder
	if w.drawn == "" {
		b.WriteString(strings.Repeat("\n", max(rows-1, 0)))
	}
	b.WriteString(toTop)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, l := range cutRows(append([]string{watchHeading(columns), ""}, lines...), columns, rows-1) {
		b.WriteString(l + eraseTail + "\n")
	}
	b.WriteString(eraseRest)
	w.drawn = text
	w.a.Printf("%s", b.String())
}

// watchHeading is as much of the first line as there is room for.
func watchHeading(columns int) string {
	const whole, least = "what waits for you; Ctrl+C ends", "Ctrl+C ends"
	if len(whole) <= columns {
		return whole
	}
	return view.Fit(least, columns, "")
}

// cutRows is as many of the lines as so many rows hold, of which a line that is
// wider than the terminal takes several.
func cutRows(lines []string, columns, rows int) []string {
	used, fit := 0, 0 // rows of the lines so far; lines that leave a row for saying that there are more
	for i, l := range lines {
		if used += max(1, (runewidth.StringWidth(l)+columns-1)/columns); used < rows {
			fit = i + 1
		}
	}
	if used <= rows {
		return lines
	}
	return append(slices.Clip(lines[:fit]), "more: deepseek questions")
}

// waitingIDs names what waits for an answer.
func waitingIDs(found []sessionQuestions) []string {
	var ids []string
	for _, q := range found {
		for _, a := range q.Active {
			ids = append(ids, q.SessionID+" "+a.CallID)
		}
		for _, w := range q.Waits {
			ids = append(ids, q.SessionID+" "+w.CallID)
		}
	}
	return ids
}

// outCursor is Cursor for stdout.
func (a *App) outCursor() bool {
	t := a.Getenv("TERM")
	return a.OutTerminal() && t != "" && t != "dumb"
}

// outSize is the size of the terminal on stdout.
func (a *App) outSize() (columns, rows int) {
	if f, ok := a.streams.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return a.outWidth(), 24
}
