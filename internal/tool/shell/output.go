package shell

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"deepseek/internal/tool"
)

const (
	tailSize = 64 << 10 // bytes of output kept in memory
	// spillMax bounds a spill file: a program that prints without end must not
	// fill the disk that the session's log is on.
	spillMax = 1 << 30
	// progressEvery is the least time between two lines for the screen.
	progressEvery = 100 * time.Millisecond
)

// output takes what a command prints, in constant memory: the end of it, and
// the whole in a spill file once it is longer than a result of another tool may
// be. mu owns everything.
type output struct {
	spill    tool.Spill // may be nil
	hint     string
	max      int64 // of the spill file
	progress func(line string)

	mu       sync.Mutex
	total    int64
	tail     []byte // at least the last tailSize bytes
	file     tool.SpillFile
	spilled  int64
	spillErr error // why the file does not hold the whole
	finished bool  // nothing more is printed
	shown    time.Time
}

var errFull = errors.New("it is full")

// Write never fails: a command is not ended because its spill file is.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.total+int64(len(p)) > tool.MaxContent {
		o.openSpill()
	}
	o.toSpill(p)
	o.total += int64(len(p))
	o.tail = append(o.tail, p[max(0, len(p)-tailSize):]...)
	if len(o.tail) > 2*tailSize {
		n := copy(o.tail, o.tail[len(o.tail)-tailSize:])
		o.tail = o.tail[:n]
	}
	if o.progress != nil {
		o.show(p)
	}
	return len(p), nil
}

func (o *output) show(p []byte) {
	if now := time.Now(); now.Sub(o.shown) >= progressEvery {
		if line := lastLine(p[max(0, len(p)-4096):]); line != "" {
			o.shown = now
			o.progress(line)
		}
	}
}

func lastLine(p []byte) string {
	text := strings.TrimRight(string(p), "\r\n\t ")
	return tool.Printable(text[strings.LastIndexAny(text, "\r\n")+1:])
}

// openSpill makes the file with what was printed so far, once. It is called while
// the tail still holds all of that.
func (o *output) openSpill() {
	if o.file != nil || o.spillErr != nil {
		return
	}
	if o.spill == nil {
		o.spillErr = errors.New("there is no folder for it")
		return
	}
	file, err := o.spill.Create(o.hint)
	if err != nil {
		o.spillErr = err
		return
	}
	o.file = file
	o.toSpill(o.tail)
}

func (o *output) toSpill(p []byte) {
	if o.file == nil || o.spillErr != nil {
		return
	}
	full := o.spilled+int64(len(p)) > o.max
	if full {
		p = p[:o.max-o.spilled]
	}
	n, err := o.file.Write(p)
	o.spilled += int64(n)
	if err == nil && full {
		err = errFull
	}
	o.spillErr = err
}

// finish closes the spill file. The output stays readable.
func (o *output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	o.closeSpill()
}

func (o *output) closeSpill() {
	if o.file != nil {
		if err := o.file.Close(); err != nil && o.spillErr == nil {
			o.spillErr = err
		}
	}
}

// spillName is the name of the spill file, "" where there is none.
func (o *output) spillName() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return ""
	}
	return o.file.Name()
}

// since is what was printed from an offset on, fit to be shown: the last
// tailSize bytes, after a line that says what is left out and where it is, or where
// it would be of another tool. next is the offset to go on from.
func (o *output) since(from int64) (text string, next int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	have := o.tail[max(0, len(o.tail)-tailSize):]
	cut := from < o.total-int64(len(have))
	if !cut {
		have = have[int64(len(have))-(o.total-from):]
	}
	text = tool.Printable(string(whole(have, cut)))
	if !cut && len(text) <= tool.MaxContent {
		return text, o.total
	}
	if o.total <= tailSize && o.file == nil { // much of it is no text, and was made so
		if o.openSpill(); o.finished {
			o.closeSpill()
		}
	}
	if !cut && len(text) <= tailSize {
		return fmt.Sprintf("[%d bytes of output; %s]\n%s", o.total-from, o.where(), text), o.total
	}
	if len(text) > tailSize {
		text = string(whole([]byte(text[len(text)-tailSize:]), true))
	}
	return fmt.Sprintf("[the end of %d bytes of output; %s]\n%s", o.total-from, o.where(), text), o.total
}

// whole drops what a cut left of a line at the beginning of text, if the text
// has many, or else of a character.
func whole(text []byte, cut bool) []byte {
	if !cut {
		return text
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 && i < len(text)/2 {
		return text[i+1:]
	}
	for n := 0; n < utf8.UTFMax-1 && len(text) > 0 && !utf8.RuneStart(text[0]); n++ {
		text = text[1:]
	}
	return text
}

// where says where everything is that was printed.
func (o *output) where() string {
	switch {
	case o.file == nil && o.spillErr != nil:
		return "the whole could not be kept: " + o.spillErr.Error()
	case o.file == nil:
		return "the rest is not shown"
	case errors.Is(o.spillErr, errFull):
		return fmt.Sprintf("the first %d bytes are in %s", o.spilled, o.file.Path())
	case o.spillErr != nil:
		return fmt.Sprintf("the first %d bytes are in %s, then: %v", o.spilled, o.file.Path(), o.spillErr)
	default:
		return "the whole is in " + o.file.Path()
	}
}
