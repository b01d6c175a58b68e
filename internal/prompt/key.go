package prompt

import (
	"bytes"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// keyCode names a key that a card knows.
type keyCode int

const (
	keySkip  keyCode = iota // recognised as one whole key that means nothing here
	keyText                 // one printable rune, in key.text
	keyPaste                // a bracketed paste, in key.text, lines ended by \n
	keyEnter
	keyLine // a line typed at the plain face, in key.text
	keyEsc
	keyTab
	keyBackTab
	keyUp
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyPageUp
	keyPageDown
	keyBackspace
	keyDelete
	keyCtrlA
	keyCtrlC
	keyCtrlE
	keyCtrlK
	keyCtrlL
	keyCtrlO
	keyCtrlT
	keyCtrlU
	keyCtrlW
	keyCtrlZ
)

type key struct {
	code keyCode
	text string
	cut  bool   // a paste of which the rest was dropped
	raw  []byte // what it was decoded from, to give it back to the next card
}

// How long the rest of a sequence may take. Terminals send a sequence in one
// piece; over a network it may arrive in several.
const (
	escapeWait = 50 * time.Millisecond
	stringWait = time.Second
)

// maxPaste bounds what one paste brings in, in bytes; the rest of it is dropped, and the person told.
const maxPaste = 256 << 10

var (
	pasteStart = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// decoder turns terminal bytes into keys. It takes any split of the input: a
// sequence that is not yet whole stays until more arrives or flush is called.
// The zero value is ready; not safe for concurrent use.
type decoder struct {
	buf      []byte
	inPaste  bool
	pasted   []byte
	cut      bool // the paste was longer than maxPaste
	inString bool // within an OSC, DCS, SOS, PM or APC, which is skipped
}

func (d *decoder) write(b []byte) { d.buf = append(d.buf, b...) }

// next returns the next whole key; false means that more bytes are needed.
// Keys that mean nothing are passed over.
func (d *decoder) next() (key, bool) {
	for len(d.buf) > 0 {
		if d.inPaste {
			k, ok := d.paste()
			if !ok {
				return key{}, false
			}
			return k, true
		}
		if d.inString {
			if !d.skipString() {
				return key{}, false
			}
			continue
		}
		k, n := d.decode()
		if n == 0 {
			return key{}, false
		}
		k.raw = bytes.Clone(d.buf[:n])
		d.buf = d.buf[n:]
		if k.code != keySkip {
			return k, true
		}
	}
	return key{}, false
}

// wait says how long to wait for the rest of what has begun; 0 when nothing has.
func (d *decoder) wait() time.Duration {
	switch {
	case d.inPaste, d.inString:
		return stringWait
	case len(d.buf) > 0:
		return escapeWait
	}
	return 0
}

// flush says that the rest will not come: a lone escape byte becomes Esc, an
// unended paste ends here, any other beginning is dropped.
func (d *decoder) flush() (key, bool) {
	raw := d.rest()
	defer func() { *d = decoder{} }()
	switch {
	case d.inPaste:
		d.take(d.buf)
		return key{code: keyPaste, text: cleanPaste(d.pasted), cut: d.cut, raw: raw}, true
	case !d.inString && len(d.buf) == 1 && d.buf[0] == 0x1b:
		return key{code: keyEsc, raw: raw}, true
	}
	return key{}, false
}

// rest is what has been taken in and not yet become a key, as it came.
func (d *decoder) rest() []byte {
	var b []byte
	if d.inPaste {
		b = append(append(b, pasteStart...), d.pasted...)
	}
	return append(b, d.buf...)
}

func (d *decoder) paste() (key, bool) {
	if i := bytes.Index(d.buf, pasteEnd); i >= 0 {
		d.take(d.buf[:i])
		d.buf = d.buf[i+len(pasteEnd):]
		k := key{code: keyPaste, text: cleanPaste(d.pasted), cut: d.cut}
		k.raw = append(append(append(k.raw, pasteStart...), d.pasted...), pasteEnd...)
		d.inPaste, d.pasted, d.cut = false, nil, false
		return k, true
	}
	// All but a possible beginning of the end mark belongs to the paste.
	keep := 0
	for n := min(len(pasteEnd)-1, len(d.buf)); n > 0; n-- {
		if bytes.HasSuffix(d.buf, pasteEnd[:n]) {
			keep = n
			break
		}
	}
	d.take(d.buf[:len(d.buf)-keep])
	d.buf = d.buf[len(d.buf)-keep:]
	return key{}, false
}

func (d *decoder) take(b []byte) {
	n := min(len(b), maxPaste-len(d.pasted))
	d.pasted = append(d.pasted, b[:n]...)
	d.cut = d.cut || n < len(b)
}

// skipString drops bytes to the end of a control string; false while it goes on.
func (d *decoder) skipString() bool {
	for i, c := range d.buf {
		switch c {
		case 0x07, 0x18, 0x1a:
			d.buf, d.inString = d.buf[i+1:], false
			return true
		case 0x1b: // ESC \ ends it; ESC and anything else cancels it and begins anew
			if i+1 == len(d.buf) {
				d.buf = d.buf[i:]
				return false
			}
			d.buf, d.inString = d.buf[i:], false
			if d.buf[1] == '\\' {
				d.buf = d.buf[2:]
			}
			return true
		}
	}
	d.buf = nil
	return false
}

var controls = map[byte]keyCode{
	'\r': keyEnter, '\n': keyEnter, '\t': keyTab, 8: keyBackspace, 127: keyBackspace,
	1: keyCtrlA, 3: keyCtrlC, 5: keyCtrlE, 11: keyCtrlK, 12: keyCtrlL, 15: keyCtrlO,
	20: keyCtrlT, 21: keyCtrlU, 23: keyCtrlW, 26: keyCtrlZ,
}

// decode reads one key at the head of the buffer; length 0 means incomplete.
func (d *decoder) decode() (key, int) {
	b := d.buf
	if b[0] == 0x1b {
		return d.escape()
	}
	if b[0] < 0x20 || b[0] == 127 {
		return key{code: controls[b[0]]}, 1
	}
	if !utf8.FullRune(b) {
		return key{}, 0
	}
	r, n := utf8.DecodeRune(b)
	if (r == utf8.RuneError && n == 1) || unicode.IsControl(r) {
		return key{}, n
	}
	return key{code: keyText, text: string(r)}, n
}

func (d *decoder) escape() (key, int) {
	b := d.buf
	if len(b) == 1 {
		return key{}, 0
	}
	switch b[1] {
	case 0x1b, 3, 26: // Esc, then another key that must not be lost
		return key{code: keyEsc}, 1
	case '[':
		return d.csi()
	case 'O':
		if len(b) < 3 {
			return key{}, 0
		}
		return key{code: letters[b[2]]}, 3
	case ']', 'P', 'X', '^', '_':
		if len(b) < 3 { // alone it is Alt and a key
			return key{}, 0
		}
		d.inString = true
		return key{}, 2
	}
	if !utf8.FullRune(b[1:]) {
		return key{}, 0
	}
	_, n := utf8.DecodeRune(b[1:])
	return key{}, 1 + n // Alt and a key
}

var letters = map[byte]keyCode{'A': keyUp, 'B': keyDown, 'C': keyRight, 'D': keyLeft, 'H': keyHome, 'F': keyEnd, 'M': keyEnter}

var tildes = map[string]keyCode{
	"1": keyHome, "7": keyHome, "4": keyEnd, "8": keyEnd, "3": keyDelete, "5": keyPageUp, "6": keyPageDown,
}

// csi reads ESC [ parameters final. A byte that cannot stand in one ends it.
func (d *decoder) csi() (key, int) {
	b := d.buf
	if len(b) > 2 && b[2] == '[' { // a function key of the Linux console
		if len(b) < 4 {
			return key{}, 0
		}
		return key{}, 4
	}
	for i := 2; i < len(b); i++ {
		switch c := b[i]; {
		case c >= 0x40 && c <= 0x7e:
			param := string(b[2:i])
			switch {
			case c == '~' && param == "200":
				d.inPaste = true
			case c == '~':
				return key{code: tildes[param]}, i + 1
			case c == 'Z':
				return key{code: keyBackTab}, i + 1
			case param == "" && c != 'M':
				return key{code: letters[c]}, i + 1
			}
			return key{}, i + 1
		case c < 0x20 || c > 0x7e:
			return key{}, i
		}
	}
	return key{}, 0
}

// cleanPaste makes the pasted bytes text: line ends become \n, tabs stay, other
// control characters and what is no UTF-8 go.
func cleanPaste(b []byte) string {
	s := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(string(b), ""))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}
