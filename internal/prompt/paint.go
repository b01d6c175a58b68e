package prompt

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/template"

	"github.com/AlecAivazis/survey/v2/core"
)

// frameTemplate colours a frame, line by line, with survey's colour function.
const frameTemplate = `{{range .}}{{if .Style}}{{color .Style}}{{end}}{{.Text}}{{if .Style}}{{color "reset"}}{{end}}
{{end}}`

// Of survey's templates the functions are used rather than RunTemplate, which decides
// about colour from the environment, once for the process.
var (
	frameColoured = parsed(core.TemplateFuncsWithColor)
	framePlain    = parsed(core.TemplateFuncsNoColor)
)

// parsed is the template, parsed with the first card: most commands draw none.
func parsed(functions template.FuncMap) func() *template.Template {
	return sync.OnceValue(func() *template.Template {
		return template.Must(template.New("frame").Funcs(functions).Parse(frameTemplate))
	})
}

// Style and Text are for the template.
func (l line) Style() string { return l.style }
func (l line) Text() string  { return l.text }

func coloured(lines []line, colour bool) ([]string, error) {
	t := framePlain()
	if colour {
		t = frameColoured()
	}
	var b strings.Builder
	if err := t.Execute(&b, lines); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), nil
}

// painter brings frames onto the screen, each over the last, with one write a frame. It moves
// relative to where it left the cursor; nothing else may write in between. The runner of the
// card owns it.
type painter struct {
	w      io.Writer
	colour bool
	reflow bool // the terminal breaks long lines anew when it gets narrower

	shown  []string // as written
	widths []int    // of the lines shown
	row    int      // where the cursor was left
	col    int
	lost   []int // widths of the lines of the card that stand above a screen too low for it
}

// eraseBelow erases from the beginning of the line to the end of the screen. Not
// at once: erasing a whole screen makes some terminals keep it as history.
const eraseBelow = "\r\x1b[K\x1b[1C\x1b[J\r"

// paint draws the frame over the last one, writing only the lines that changed.
func (p *painter) paint(f frame) error {
	lines, err := coloured(f.lines, p.colour)
	if err != nil {
		return err
	}
	var b strings.Builder
	// Without wrapping, a line drawn for a width that has just shrunk is cut, not broken.
	b.WriteString("\x1b[?25l\x1b[?7l")
	b.WriteString(up(p.row))
	fewer := len(lines) < len(p.shown)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		if i < len(p.shown) && p.shown[i] == l && (!fewer || i < len(lines)-1) {
			continue
		}
		b.WriteString(l + "\x1b[K")
	}
	if fewer {
		b.WriteString("\x1b[J")
	}
	row, col := len(lines)-1, 0
	if f.cursor {
		row, col = f.row, f.col
	}
	b.WriteString(up(len(lines) - 1 - row))
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	b.WriteString("\x1b[?7h")
	if f.cursor {
		b.WriteString("\x1b[?25h")
	}
	p.shown, p.row, p.col = lines, row, col
	p.widths = p.widths[:0]
	for _, l := range f.lines {
		p.widths = append(p.widths, width(l.text))
	}
	_, err = io.WriteString(p.w, b.String())
	return err
}

// up goes to the start of the line n lines above.
func up(n int) string {
	if n <= 0 {
		return "\r"
	}
	return fmt.Sprintf("\r\x1b[%dA", n)
}

// erase takes the card off a terminal that is now cols wide and height high. What
// was pushed out above its screen is beyond reach, and stays to be erased: most
// terminals bring it back when they get higher. Where one does not, the card
// stands on top of the screen, and there is nothing further up to be erased.
// Below the line with the cursor such terminals cut off what has no room.
func (p *painter) erase(cols, height int) error {
	upTo := append(p.lost, p.widths[:min(p.row+1, len(p.widths))]...) // the cursor's line
	whole := 0                                                        // rows of these
	for _, w := range upTo {
		whole += p.rowsOf(w, cols)
	}
	rows := max(whole-1, 0) // above the cursor's
	if p.reflow && cols > 0 && len(upTo) > 0 {
		rows = whole - p.rowsOf(upTo[len(upTo)-1], cols) + p.col/cols
	}
	p.forget()
	if out := whole - height; height > 0 && out > 0 {
		p.lost = p.first(upTo, out, cols)
	}
	_, err := io.WriteString(p.w, up(rows)+eraseBelow)
	return err
}

// rowsOf is how many rows a line takes on a terminal cols wide.
func (p *painter) rowsOf(w, cols int) int {
	if !p.reflow || cols <= 0 {
		return 1
	}
	return max((w+cols-1)/cols, 1)
}

// first is what the first rows hold: lines, the last of which may be a part of one.
func (p *painter) first(widths []int, rows, cols int) []int {
	var out []int
	for _, w := range widths {
		n := p.rowsOf(w, cols)
		if n >= rows {
			if n > rows {
				w = rows * cols
			}
			return append(out, w)
		}
		out, rows = append(out, w), rows-n
	}
	return out
}

// forget lets the next frame begin where the cursor is.
func (p *painter) forget() {
	p.shown, p.widths, p.row, p.col, p.lost = nil, nil, 0, 0, nil
}

// below leaves the card standing and goes to the line under it.
func (p *painter) below() string {
	n := len(p.shown) - 1 - p.row
	p.forget()
	if n > 0 {
		return fmt.Sprintf("\x1b[%dB\r\n", n)
	}
	return "\r\n"
}
