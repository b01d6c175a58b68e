package cli

import "bytes"

// workflowGuard keeps text of models, tools and servers from being taken for
// commands by GitHub Actions, which reads them out of whatever a job prints on
// stderr: `::error::…` where a line begins so, after blanks, and `##[error]…`
// wherever it stands in a line. It parts them with a backslash, which everybody
// sees: `:\:error::…`, `##\[error]…`.
//
// A line ends at \n and at \r alone. What a reader may skip or take for nothing
// (control bytes, and all beyond ASCII: there are invisible letters) does not hide
// the marks. Whatever the pieces in which text is written, no mark gets through.
//
// It belongs to the output that uses it.
type workflowGuard struct {
	ours map[string]int // whole lines that are commands of our own, and how often

	begun  bool // the line has more than blanks in it
	colon  bool // all it has is one colon
	hashes int  // how many stand last in it, up to 2
}

func newWorkflowGuard() *workflowGuard { return &workflowGuard{ours: map[string]int{}} }

// disarm returns p, or what is to be written in its place.
func (g *workflowGuard) disarm(p []byte) []byte {
	if g == nil {
		return p
	}
	var out []byte
	kept := 0 // of p, in out
	for i := 0; i < len(p); i++ {
		if !g.begun && !g.colon && p[i] == ':' && (i == 0 || p[i-1] == '\n') {
			if end := bytes.IndexByte(p[i:], '\n'); end >= 0 && g.own(string(p[i:i+end])) {
				i += end - 1 // the line's end comes next
				continue
			}
		}
		if g.arms(p[i]) {
			out = append(append(out, p[kept:i]...), '\\')
			kept = i
		}
	}
	if out == nil {
		return p
	}
	return append(out, p[kept:]...)
}

// own takes a line off those that may pass.
func (g *workflowGuard) own(line string) bool {
	if g.ours[line] == 0 {
		return false
	}
	if g.ours[line]--; g.ours[line] == 0 {
		delete(g.ours, line)
	}
	return true
}

// arms tells whether a byte would complete a mark, and takes note of it.
func (g *workflowGuard) arms(b byte) bool {
	switch {
	case b == '\n' || b == '\r':
		g.begun, g.colon, g.hashes = false, false, 0
		return false
	case b < ' ' || b >= 0x7f: // may be nothing to a reader
		return false
	case b == ' ':
		g.begun, g.colon, g.hashes = g.begun || g.colon, false, 0
		return false
	}
	mark := b == ':' && g.colon || b == '[' && g.hashes == 2
	g.colon = b == ':' && !g.begun && !g.colon
	g.begun = g.begun || !g.colon
	if b == '#' {
		g.hashes = min(2, g.hashes+1)
	} else {
		g.hashes = 0
	}
	return mark
}
