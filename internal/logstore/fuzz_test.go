package logstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"deepseek/internal/session"
)

// Whatever a file holds, reading gives an error or consistent lines, and what
// is decoded the quick way is what the full parser makes of it. The first
// inputs are in testdata/fuzz.
func FuzzRead(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines []Line
		end, err := readFrom(t.Context(), bytes.NewReader(data), "f", nil, func(l Line) error {
			l.Raw = bytes.Clone(l.Raw)
			lines = append(lines, l)
			return nil
		})
		at := int64(bytes.IndexByte(data, '\n') + 1)
		for i, l := range lines {
			if l.Seq != int64(i) || l.Offset != at || l.Number != i+2 || !bytes.Equal(data[at:at+int64(len(l.Raw))], l.Raw) {
				t.Fatalf("line %d: %+v", i, l)
			}
			at += int64(len(l.Raw)) + 1
		}
		if err != nil {
			if !errors.Is(err, session.ErrDamaged) && !errors.Is(err, session.ErrTooNew) {
				t.Fatalf("an error of neither kind: %v", err)
			}
			return
		}
		if end.Next != int64(len(lines)) || end.Size != at || end.Size+end.Torn != int64(len(data)) {
			t.Fatalf("%+v, %d lines, %d bytes", end, len(lines), len(data))
		}
		for i, l := range lines {
			e, err := l.Event()
			if err != nil {
				if !errors.Is(err, session.ErrDamaged) || i == len(lines)-1 && end.Torn == 0 {
					t.Fatalf("line %d: %v", i, err)
				}
				continue
			}
			want, err := session.ParseEvent(l.Raw)
			if err != nil || !bytes.Equal(e.AppendLine(nil), want.AppendLine(nil)) {
				t.Fatalf("line %d: %+v, want %+v, %v", i, e, want, err)
			}
		}
	})
}

// What the quick check takes, encoding/json takes, to the same byte.
func FuzzValid(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-0.5e+3,true,false,null,"\u00e9\n\""],"b":{ }}`, `[1,]`, `{"a"}`, `{"a":1,}`, `01`, `1.`, `-`, `1e`, `"\x"`, `"\u12"`, "\"\n\"", `[]`, `{} `, `tru`, `[[[[]]]]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, want := valid(data), json.Valid(data); got != want {
			t.Fatalf("%q: %v, encoding/json says %v", data, got, want)
		}
		if n := skipValue(data, 0); n >= 0 && !json.Valid(data[:n]) {
			t.Fatalf("%q: took %d bytes", data, n)
		}
	})
}
