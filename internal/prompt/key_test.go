package prompt

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// decodeAll feeds the pieces one after the other and, at the end, says that nothing more comes.
func decodeAll(pieces ...[]byte) []key {
	var d decoder
	var keys []key
	take := func() {
		for k, ok := d.next(); ok; k, ok = d.next() {
			keys = append(keys, k)
		}
	}
	for _, p := range pieces {
		d.write(p)
		take()
	}
	if d.wait() > 0 {
		if k, ok := d.flush(); ok {
			keys = append(keys, k)
		}
	}
	return keys
}

func TestDecode(t *testing.T) {
	text := func(s string) (keys []key) {
		for _, r := range s {
			keys = append(keys, key{code: keyText, text: string(r)})
		}
		return keys
	}
	only := func(codes ...keyCode) (keys []key) {
		for _, c := range codes {
			keys = append(keys, key{code: c})
		}
		return keys
	}
	for _, c := range []struct {
		name, in string
		want     []key
	}{
		{"text", "añ蓝👍🏽", text("añ蓝👍🏽")},
		{"both Enters", "\r\n", only(keyEnter, keyEnter)},
		{"controls", "\x01\x03\x05\x08\x0b\x0c\x0f\x14\x15\x17\x1a\x7f\t", only(keyCtrlA, keyCtrlC, keyCtrlE, keyBackspace, keyCtrlK,
			keyCtrlL, keyCtrlO, keyCtrlT, keyCtrlU, keyCtrlW, keyCtrlZ, keyBackspace, keyTab)},
		{"controls without a meaning", "\x00\x02\x04\x1c\x1f\u0085", nil},
		{"arrows both ways", "\x1b[A\x1bOA\x1b[B\x1bOB\x1b[C\x1b[D", only(keyUp, keyUp, keyDown, keyDown, keyRight, keyLeft)},
		{"home, end and the like", "\x1b[H\x1bOH\x1b[1~\x1b[7~\x1b[F\x1b[4~\x1b[3~\x1b[5~\x1b[6~\x1b[Z", only(keyHome, keyHome, keyHome, keyHome,
			keyEnd, keyEnd, keyDelete, keyPageUp, keyPageDown, keyBackTab)},
		{"keypad Enter", "\x1bOM", only(keyEnter)},
		{"a lone escape", "\x1b", only(keyEsc)},
		{"two escapes", "\x1b\x1b", only(keyEsc, keyEsc)},
		{"escape, then an arrow", "\x1b\x1b[A", only(keyEsc, keyUp)},
		{"escape and Ctrl+C is not lost as Alt", "\x1b\x03", only(keyEsc, keyCtrlC)},
		{"Alt and a key", "\x1bx\x1b蓝y", text("y")},
		{"Alt and a bracket, alone", "\x1b[", nil},
		{"modified and unknown", "\x1b[1;5C\x1b[I\x1b[200;1~\x1b[?2004$y\x1b[M\x1b[99~z", text("z")},
		{"a console's function key", "\x1b[[Ax", text("x")},
		{"a sequence broken off by a key", "\x1b[1;\rx", append(only(keyEnter), text("x")...)},
		{"OSC ended by BEL", "\x1b]11;rgb:0/0/0\x07x", text("x")},
		{"OSC ended by ST", "\x1b]0;t\x1b\\x", text("x")},
		{"DCS, APC, PM, SOS", "\x1bP>|vt\x1b\\\x1b_a\x1b\\\x1b^p\x1b\\\x1bXs\x1b\\x", text("x")},
		{"OSC cancelled", "\x1b]0;t\x18x", text("x")},
		{"OSC broken off by a sequence", "\x1b]0;t\x1b[Bx", append(only(keyDown), text("x")...)},
		{"OSC that never ends", "\x1b]0;abc\rdef", nil},
		{"Alt and a bracket that could begin one", "\x1b]", nil},
		{"paste", "\x1b[200~a\r\nb\rc\td\x03\x1b[A\x1b[201~x", append([]key{{code: keyPaste, text: "a\nb\nc\td[A"}}, text("x")...)},
		{"paste that never ends", "\x1b[200~ab\x1b[20", []key{{code: keyPaste, text: "ab[20"}}},
		{"empty paste", "\x1b[200~\x1b[201~", []key{{code: keyPaste}}},
		{"no UTF-8", "a\xff\xc3(b", text("a(b")},
	} {
		t.Run(c.name, func(t *testing.T) {
			same := func(a, b key) bool { return a.code == b.code && a.text == b.text }
			if got := decodeAll([]byte(c.in)); !slices.EqualFunc(got, c.want, same) {
				t.Errorf("whole: %v, want %v", got, c.want)
			}
			var bytewise [][]byte
			for i := range c.in {
				bytewise = append(bytewise, []byte(c.in[i:i+1]))
			}
			bytewise = bytewise[:0]
			for i := 0; i < len(c.in); i++ {
				bytewise = append(bytewise, []byte{c.in[i]})
			}
			if got := decodeAll(bytewise...); !slices.EqualFunc(got, c.want, same) {
				t.Errorf("byte by byte: %v, want %v", got, c.want)
			}
		})
	}
}

func TestAHugePasteIsCutAndItsEndStillFound(t *testing.T) {
	keys := decodeAll([]byte("\x1b[200~"), bytes.Repeat([]byte("ab\r"), maxPaste), []byte("\x1b[201~\r"))
	if len(keys) != 2 || keys[1].code != keyEnter || len(keys[0].text) > maxPaste || !keys[0].cut {
		t.Fatal(len(keys), len(keys[0].text))
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"a\r\x1b[A", "\x1b[200~x\ny\x1b[201~\r", "\x1b]0;t\x07z", "\x1b\x1b\x1bOA", "\x1bP\x1b", "\xff\x1b[[\xc3"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		whole := decodeAll(in)
		if len(in) > 0 {
			i := int(uint(at) % uint(len(in)))
			if split := decodeAll(in[:i], in[i:]); !slices.EqualFunc(whole, split, func(a, b key) bool { return a.code == b.code && a.text == b.text }) {
				t.Fatalf("%q: whole %v, split at %d %v", in, whole, i, split)
			}
		}
		for _, k := range whole {
			if k.code == keySkip || k.code == keyText && (k.text == "" || strings.ContainsAny(k.text, "\x1b\r\n")) {
				t.Fatalf("%q: %v", in, k)
			}
			if strings.ContainsRune(k.text, 0x1b) {
				t.Fatalf("%q: an escape in text: %q", in, k.text)
			}
			if again := decodeAll(k.raw); len(again) != 1 || again[0].code != k.code || again[0].text != k.text {
				t.Fatalf("%q: key %v given back is %v", in, k, again)
			}
		}
	})
}
