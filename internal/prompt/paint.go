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
}

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

// erase takes the card off a terminal that is now cols wide.
func (p *painter) erase(cols int) error {
	rows := p.row
	if p.reflow && len(p.widths) > 0 && cols > 0 {
		rows = p.col / cols
		for _, w := range p.widths[:p.row] {
			rows += max((w+cols-1)/cols, 1)
		}
	}
	p.forget()
	_, err := io.WriteString(p.w, up(rows)+"\x1b[J")
	return err
}

// forget lets the next frame begin where the cursor is.
func (p *painter) forget() {
	p.shown, p.widths, p.row, p.col = nil, nil, 0, 0
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
