package view

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text is untouched", "hello, wörld 你好\n\tx", "hello, wörld 你好\n\tx"},
		{"colour", "\x1b[31mred\x1b[0m", "^[[31mred^[[0m"},
		{"title", "\x1b]0;owned\a", "^[]0;owned^G"},
		{"C1 introducer", "a\u009b31mb", "a<U+009B>31mb"},
		{"raw C1 byte", "a\x9b31m", "a<9B>31m"},
		{"bell, backspace, delete, null", "\a\b\x7f\x00", "^G^H^?^@"},
		{"lone carriage return would overwrite the line", "safe\rrm -rf", "safe^Mrm -rf"},
		{"line end of Windows", "a\r\nb\r\n", "a\nb\n"},
		{"direction override", "user\u202etxt.exe", "user<U+202E>txt.exe"},
		{"isolates and marks", "\u2066\u2069\u200f\u061c", "<U+2066><U+2069><U+200F><U+061C>"},
		{"emoji joiners stay", "👩\u200d💻", "👩\u200d💻"},
		{"what takes no room", "a\u200bb\u00adc\u2060d\ufeffe\U000e0041", "a<U+200B>b<U+00AD>c<U+2060>d<U+FEFF>e<U+E0041>"},
		{"selectors of emoji stay", "❤\ufe0f", "❤\ufe0f"},
		{"replacement character itself stays", "\ufffd", "\ufffd"},
		{"half a rune", "\xe4\xbd", "<E4><BD>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Visible(c.in); got != c.want {
				t.Errorf("Visible(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\n\n  b\t\x1b[1mc\n": "a b ^[[1mc",
		"a\r\nb\r\n":           "a b",
		"echo a\rrm b":         "echo a^Mrm b", // bash does not part words there
		"make\vtest\f":         "make^Ktest^L",
		"a\u3164b":             "a<U+3164>b",
	} {
		if got := OneLine(in); got != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b[31m\u202e\r\n\x9b")
	f.Fuzz(func(t *testing.T, s string) {
		v := Visible(s)
		if !utf8.ValidString(v) {
			t.Fatalf("%q is no UTF-8", v)
		}
		if strings.ContainsFunc(v, hidden) {
			t.Fatalf("%q still holds a control", v)
		}
		if Visible(v) != v {
			t.Fatalf("not stable: %q", v)
		}
	})
}
