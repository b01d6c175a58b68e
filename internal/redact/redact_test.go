package redact_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"deepseek/internal/redact"
)

func TestReplace(t *testing.T) {
	const key = `sk-0123456789"<x`
	tests := []struct{ name, key, in, want string }{
		{"absent", key, "nothing here", "nothing here"},
		{"alone", key, key, "[key]"},
		{"twice, side by side", key, key + key, "[key][key]"},
		{"in JSON", key, `{"a":"sk-0123456789\"<x"}`, `{"a":"[key]"}`},
		{"in JSON with HTML escapes", key, `{"a":"sk-0123456789\"\u003cx"}`, `{"a":"[key]"}`},
		{"in JSON in JSON", key, `{"text":"{\"a\":\"sk-0123456789\\\"<x\"}"}`, `{"text":"{\"a\":\"[key]\"}"}`},
		{"in JSON in JSON with HTML escapes of the inner", key, `"sk-0123456789\\\"\\u003cx"`, `"[key]"`},
		{"in JSON in JSON with HTML escapes of the outer", key, `"sk-0123456789\\\"\u003cx"`, `"[key]"`},
		{"cut off", key, key[:10], key[:10]},
		{"repeats itself", "abababab", "ababababab", "[key]ab"},
		{"its JSON form begins with it", `abcdefg\`, `abcdefg\\.abcdefg\.`, "[key].[key]."},
		{"seven bytes", "1234567", "1234567", "1234567"},
		{"eight bytes", "12345678", "12345678", "[key]"},
		{"no key", "", "text", "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := redact.New(tt.key)
			if got := k.String(tt.in); got != tt.want {
				t.Errorf("String = %q, want %q", got, tt.want)
			}
			if got := k.Bytes([]byte(tt.in)); string(got) != tt.want {
				t.Errorf("Bytes = %q, want %q", got, tt.want)
			}
			for size := 1; size <= len(tt.in)+1; size++ {
				if got := stream(t, k, tt.in, size); got != tt.want {
					t.Errorf("in pieces of %d: %q, want %q", size, got, tt.want)
				}
			}
		})
	}
}

func stream(t *testing.T, k redact.Key, in string, size int) string {
	t.Helper()
	var out strings.Builder
	w := k.Writer(&out)
	for rest := in; rest != ""; {
		n := min(size, len(rest))
		if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
			t.Fatalf("Write = %d, %v", m, err)
		}
		rest = rest[n:]
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestIn(t *testing.T) {
	tests := []struct {
		key, s string
		want   bool
	}{
		{"", "", false},
		{"", "a", false},
		{"short", "short", true},
		{"short", "a short one", false},
		{"long-enough", "x=long-enough;", true},
		{`long"enough`, `long\"enough`, true},
		{"long-enough", "long-enoug", false},
	}
	for _, tt := range tests {
		if got := redact.New(tt.key).In(tt.s); got != tt.want {
			t.Errorf("New(%q).In(%q) = %v", tt.key, tt.s, got)
		}
	}
	if (redact.Key{}).In("x") || (redact.Key{}).String("x") != "x" {
		t.Error("the zero value replaces something")
	}
}

func TestWriterHoldsBackLessThanTheKey(t *testing.T) {
	var out bytes.Buffer
	w := redact.New("aaaaaaaab").Writer(&out)
	if _, err := w.Write(bytes.Repeat([]byte("a"), 1000)); err != nil {
		t.Fatal(err)
	}
	if out.Len() < 1000-8 {
		t.Errorf("only %d of 1000 bytes passed on", out.Len())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterTellsTheErrorBelow(t *testing.T) {
	w := redact.New("12345678").Writer(broken{})
	if _, err := w.Write([]byte("text")); err == nil {
		t.Error("no error")
	}
	w = redact.New("12345678").Writer(broken{})
	if _, err := w.Write([]byte("1234")); err != nil {
		t.Error(err)
	}
	if w.Flush() == nil {
		t.Error("no error of Flush")
	}
}

func FuzzStreamEqualsWhole(f *testing.F) {
	f.Add("abababab", "xababababababab", 3)
	f.Add(`abcdefg\`, `abcdefg\\abcdefg\`, 1)
	f.Add(`a"a"a"a"`, `a\"a\"a\"a\"a"a"a"a"`, 2)
	f.Fuzz(func(t *testing.T, key, in string, size int) {
		k := redact.New(key)
		if size < 1 {
			size = 1
		}
		if got, want := stream(t, k, in, size), k.String(in); got != want {
			t.Errorf("in pieces of %d: %q, whole %q", size, got, want)
		}
	})
}

func BenchmarkAbsent(b *testing.B) {
	k := redact.New("sk-0123456789abcdef0123456789abcdef")
	text := bytes.Repeat([]byte("a line of ordinary output, sk-012 included\n"), 1500)
	w := k.Writer(discard{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := w.Write(text); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// A search that begins anew behind each place takes minutes here.
func TestATextFullOfTheKeyTakesTimeByItsLength(t *testing.T) {
	const key, lines = `sk-0123456789"<x`, 100_000
	k := redact.New(key)
	in, want := strings.Repeat(key+"\n", lines), strings.Repeat("[key]\n", lines)
	if got := k.String(in); got != want {
		t.Errorf("String left %d bytes, want %d", len(got), len(want))
	}
	if got := stream(t, k, in, 1<<20); got != want {
		t.Errorf("the stream left %d bytes, want %d", len(got), len(want))
	}
}
