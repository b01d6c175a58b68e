package prompt

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// How a runner is on the screen: taking the terminal and giving it back, bytes in, frames out.

func (r *runner) openScreen() error {
	if !r.p.Terminal.Foreground() { // changing the modes would stop the process
		return fmt.Errorf("%w: %w", ErrTerminal, errBackground)
	}
	if r.p.Screen != nil {
		r.p.Screen.Pause()
	}
	r.onScreen = true
	cols, _ := r.p.Terminal.Size()
	r.plain = r.p.Plain || cols < minColumns
	if err := r.p.Terminal.Start(!r.plain); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrTerminal, err), r.closeScreen())
	}
	return r.enterScreen()
}

// enterScreen begins on a screen that shows nothing of this card.

func (r *runner) enterScreen() error {
	r.paint.forget()
	r.printed, r.s.drawn = "", false
	r.cols, r.rows = r.p.Terminal.Size()
	if r.plain {
		return nil
	}
	return r.out(eraseBelow) // what was typed ahead was echoed there
}

// closeScreen brings the terminal back; bytes that were not used stay for the next card.
func (r *runner) closeScreen() error {
	if !r.onScreen {
		return nil
	}
	r.onScreen = false
	r.escAt = time.Time{}
	var err error
	var rest []byte
	for _, k := range r.queue {
		rest = append(rest, k.raw...)
	}
	rest = append(append(rest, r.typed.String()...), r.dec.rest()...)
	r.queue, r.dec = nil, decoder{}
	r.typed.Reset()
	r.p.Terminal.Keep(rest)
	if stop := r.p.Terminal.Stop(); stop != nil {
		err = errors.Join(err, fmt.Errorf("%w: %w", ErrTerminal, stop))
	}
	if r.p.Screen != nil {
		r.p.Screen.Resume()
	}
	return err
}

// out writes to the terminal; an error of it ends the card.
func (r *runner) out(text string) error {
	if _, err := io.WriteString(r.p.Terminal, text); err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	return nil
}

// write is out where an error can have no consequence: last words.
func (r *runner) write(text string) { _ = r.out(text) }

// say replaces the card by its last words, or leaves them to whoever has the terminal.
// They are broken at words; what begins with a space is a command, and is not.
func (r *runner) say(lines ...string) error {
	text := ""
	for l := range strings.SplitSeq(strings.Join(lines, "\n"), "\n") {
		if r.cols > 0 && !strings.HasPrefix(l, " ") {
			l = strings.Join(wrap(l, r.cols), "\r\n")
		}
		text += l + "\r\n"
	}
	if !r.onScreen {
		r.p.turns.notice(text, r.write)
		return nil
	}
	if r.plain {
		return r.out("\r\n" + text) // below the prompt
	}
	if err := r.paint.erase(r.cols, r.rows); err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	return r.out(text)
}

// above brings out what others have to say, above the card, which is drawn again.
func (r *runner) above(text string) error {
	if text == "" {
		return nil
	}
	if r.plain {
		r.printed = ""
		return r.out("\r\n" + text)
	}
	if err := r.paint.erase(r.cols, r.rows); err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	r.paint.forget() // what stands above is not the card's alone any more
	return r.out(text)
}

// laterLine says what became of the card and, where it can still be answered, how.
// A command that does not fit behind the words has a line of its own, so that it
// can be copied whole.
func (r *runner) laterLine(what string) string {
	line := "? " + cardName(r.card, 0) + ": " + what
	if !r.card.Timed || r.card.AnswerCommand == "" {
		return line
	}
	line += ", answer later with:"
	command := oneLine(r.card.AnswerCommand)
	if r.cols > 0 && width(line+" "+command) > r.cols {
		return line + "\n  " + command
	}
	return line + " " + command
}

// feed takes in typed bytes.
func (r *runner) feed(b []byte) {
	if r.plain {
		r.feedLines(b)
		return
	}
	r.dec.write(b)
	for k, ok := r.dec.next(); ok; k, ok = r.dec.next() {
		r.queue = append(r.queue, k)
	}
	r.escAt = time.Time{}
	if d := r.dec.wait(); d > 0 {
		r.escAt = time.Now().Add(d)
	}
}

func (r *runner) feedLines(b []byte) {
	r.typed.Write(b)
	for {
		text, rest, ok := strings.Cut(r.typed.String(), "\n")
		if !ok {
			return
		}
		r.typed.Reset()
		r.typed.WriteString(rest)
		r.queue = append(r.queue, key{code: keyLine, text: text, raw: []byte(text + "\n")})
	}
}

// draw shows the card as it is now.
func (r *runner) draw() error {
	if !r.onScreen {
		return nil
	}
	if r.plain {
		return r.print()
	}
	cols, rows := r.p.Terminal.Size()
	if cols != r.cols || rows != r.rows {
		r.cols, r.rows = cols, rows
		if err := r.paint.erase(cols, rows); err != nil {
			return fmt.Errorf("%w: %w", ErrTerminal, err)
		}
	}
	if err := r.paint.paint(r.s.view(time.Now(), cols, rows)); err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	r.s.drawn = true
	return nil
}

// print is draw for the plain face: what changed is printed once.
func (r *runner) print() error {
	text := r.s.plainText()
	var b strings.Builder
	if text != r.printed {
		r.printed = text
		b.WriteString(text)
		if left := r.s.count.show(time.Now()); left != "" {
			b.WriteString("Time left: " + left + "\n")
		}
		r.told = ""
	}
	if note := r.s.note; note != r.told {
		r.told = note
		if note != "" {
			b.WriteString(visible(note) + "\n")
		}
	}
	r.s.drawn = true
	if b.Len() == 0 {
		return nil
	}
	return r.out(strings.ReplaceAll(b.String()+"> ", "\n", "\r\n"))
}

// suspend stops the process with the terminal as it was; it returns when the process goes on.
func (r *runner) suspend() error {
	if r.s.late && r.unsaved && !r.s.sending { // as in looked: a draft only where it is of use
		state, err := r.state()
		switch {
		case r.stops(err):
			return err
		case err == nil && takesNone(state):
			return r.settledElsewhere(state)
		}
	}
	if err := r.saveDraft(); err != nil {
		r.s.note = err.Error()
	}
	if !r.plain {
		if err := r.out(r.paint.below()); err != nil {
			return err
		}
	}
	if err := r.p.Terminal.Suspend(); err != nil {
		return fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	return r.enterScreen()
}

// yield lets a waiting card have the terminal while this one is hidden.
func (r *runner) yield() error {
	if !r.plain {
		if err := r.paint.erase(r.cols, r.rows); err != nil {
			return fmt.Errorf("%w: %w", ErrTerminal, err)
		}
	}
	if err := r.closeScreen(); err != nil {
		return err
	}
	r.p.turns.leave(r.turn, r.write)
	r.turn = r.p.turns.join(false)
	return nil
}
