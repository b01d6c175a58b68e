package logstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepseek/internal/session"
)

const headerText = `{"type":"session","version":1,"id":"s1","createdAt":5,"cwd":"/w","delegationDepth":0}` + "\n"

func lineText(seq int, typ, rest string) string {
	return fmt.Sprintf(`{"seq":%d,"type":%q,"time":%d,"data":{"turn":1}%s}`+"\n", seq, typ, 100+seq, rest)
}

func TestReadTable(t *testing.T) {
	a, b := lineText(0, "turn/start", ""), lineText(1, "turn/end", "")
	other := `{"data":{"turn":1},"time":100,"type":"turn/start","seq":0}` + "\n"
	for _, c := range []struct {
		name, file string
		next       int64
		torn       int
		err        error
		says       string
	}{
		{"a header alone", headerText, 0, 0, nil, ""},
		{"two events", headerText + a + b, 2, 0, nil, ""},
		{"keys in another order", headerText + other + b, 2, 0, nil, ""},
		{"last line cut", headerText + a + b[:20], 1, 20, nil, ""},
		{"last line without its newline", headerText + a + b[:len(b)-1], 1, len(b) - 1, nil, ""},
		{"last line does not parse", headerText + a + b[:20] + "\n", 1, 21, nil, ""},
		{"last line is JSON but no event", headerText + a + "{}\n", 1, 3, nil, ""},
		{"zeros at the end", headerText + a + "\x00\x00\x00", 1, 3, nil, ""},
		{"last line blank", headerText + a + "\n", 1, 1, nil, ""},
		{"earlier line cut", headerText + a[:20] + "\n" + b, 0, 0, session.ErrDamaged, "line 2, byte 86"},
		{"blank line", headerText + "\n" + a, 0, 0, session.ErrDamaged, "line 2, byte 86"},
		{"gap", headerText + a + lineText(2, "turn/end", ""), 0, 0, session.ErrDamaged, "seq 2 where 1 was to come"},
		{"not from 0", headerText + b, 0, 0, session.ErrDamaged, "seq 1 where 0 was to come"},
		{"twice", headerText + a + a + b, 0, 0, session.ErrDamaged, "line 3"},
		{"empty file", "", 0, 0, session.ErrDamaged, "line 1, byte 0"},
		{"header cut", headerText[:30], 0, 0, session.ErrDamaged, "line 1, byte 0"},
		{"no header", a + b, 0, 0, session.ErrDamaged, "line 1, byte 0"},
		{"higher version, before its shape", `{"type":"session","version":2,"id":7}` + "\n" + a, 0, 0, session.ErrTooNew, "log version 2"},
		{"unknown type", headerText + a + lineText(1, "moon/phase", ""), 0, 0, session.ErrTooNew, `"moon/phase" at line 3`},
		{"unknown type, ignorable", headerText + a + lineText(1, "moon/phase", `,"ignorable":true`), 2, 0, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s1.jsonl")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			n := int64(0)
			end, err := Read(t.Context(), path, func(l Line) error {
				if l.Seq != n || int64(bytes.Index([]byte(c.file), l.Raw)) != l.Offset {
					t.Errorf("line %+v at %d", l, n)
				}
				n++
				return nil
			})
			if !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v", err)
			}
			if err == nil && (end.Next != c.next || n != c.next || end.Torn != int64(c.torn) || end.Size+end.Torn != int64(len(c.file))) {
				t.Fatalf("end %+v after %d", end, n)
			}
			_, own := New(t.TempDir()).Own(t.Context(), path)
			if (own == nil) != (c.err == nil) || own != nil && own.Error() != err.Error() {
				t.Fatalf("a reader says %v, an owner %v", err, own)
			}
			if now, _ := os.ReadFile(path); string(now) != c.file {
				t.Fatal("the file was changed")
			}
		})
	}
}

func TestDecodeAgreesWithTheFullParser(t *testing.T) {
	for _, line := range []string{
		`{"seq":3,"type":"a/b","time":7,"data":{}}`,
		`{"seq":3,"type":"a/b","time":-7,"data":{"x":"}\"{\\","y":[{}]}}`,
		`{"seq":3,"type":"a/b","time":7,"data":{},"ignorable":true}`,
		`{"seq":3,"type":"a/b","time":7,"data":{},"surfaceOp":{"op":"replace","fromSeq":1,"toSeq":2}}`,
		`{"seq":3,"type":"a/b","time":7,"data":{},"seq":4}`,
		`{"seq":3,"type":"a/b","time":7,"data":{} }`,
		`{"seq":3,"type":"a\u002fb","time":7,"data":{}}`,
		`{"seq":03,"type":"a/b","time":7,"data":{}}`,
		`{"seq":3,"type":"a/b","time":7,"data":{}} x`,
		`{"seq":3,"type":"a/b","time":7,"data":[]}`,
		`{"seq":3,"type":"","time":7,"data":{}}`,
		`{"seq":9223372036854775807,"type":"a","time":7,"data":{}}`,
		`{"seq":3.0,"type":"a","time":7,"data":{}}`,
		`{"seq":3,"type":"a","time":7,"data":{"x":` + "\x00" + `}}`,
	} {
		got, errGot := decode([]byte(line))
		want, errWant := session.ParseEvent([]byte(line))
		if (errGot == nil) != (errWant == nil) || errGot == nil && string(got.AppendLine(nil)) != string(want.AppendLine(nil)) {
			t.Errorf("%s\n got %+v, %v\nwant %+v, %v", line, got, errGot, want, errWant)
		}
	}
}

func TestLongLinesAndChunkBorders(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(headerText)
	sizes := []int{1, 2 << 20, chunk - 300, chunk - 120, chunk, 10, 1 << 20, 0}
	for i, n := range sizes {
		e, _ := session.NewEvent("turn/start", 1, map[string]string{"x": strings.Repeat("é", n/2)})
		e.Seq = int64(i)
		file.Write(e.AppendLine(nil))
	}
	end, err := readFrom(t.Context(), bytes.NewReader(file.Bytes()), "f", nil, func(l Line) error {
		if e, err := l.Event(); err != nil || e.Seq != l.Seq || len(e.Data) < sizes[l.Seq]/2 {
			return fmt.Errorf("line %d: %w", l.Seq, err)
		}
		return nil
	})
	if err != nil || end.Next != int64(len(sizes)) || end.Size != int64(file.Len()) {
		t.Fatalf("%+v, %v", end, err)
	}
}

func TestALineIsBoundedInLength(t *testing.T) {
	r := io.NewSectionReader(endless{}, 0, 64<<20)
	s := newScanner(r, "f", chunk)
	s.limit = 1 << 20
	_, _, err := s.raw()
	var damage *DamageError
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Fatal(err)
	}
}

type endless struct{}

func (endless) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

// rewritten is a file whose owner cut a half-written line and wrote another
// while it was being read: each read is answered from the next state.
type rewritten struct{ states []string }

func (r *rewritten) ReadAt(p []byte, off int64) (int, error) {
	now := r.states[0]
	if len(r.states) > 1 {
		r.states = r.states[1:]
	}
	return strings.NewReader(now).ReadAt(p, off)
}

func TestALineRewrittenByItsOwnerWhileItIsReadIsNoDamage(t *testing.T) {
	a, b := lineText(0, "turn/start", ""), lineText(1, "turn/end", "")
	cut := headerText + a + `{"seq":1,"type":"tool/call","tim`
	whole := headerText + a + b + lineText(2, "turn/start", "")
	end, err := readFrom(t.Context(), &rewritten{[]string{cut, whole}}, "f", nil, func(l Line) error {
		if _, err := l.Event(); err != nil {
			return err
		}
		return nil
	})
	if err != nil || end.Next != 3 {
		t.Fatalf("%+v, %v", end, err)
	}
}

func TestReadingEndsWithItsContextAndWithFn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s1.jsonl")
	if err := os.WriteFile(path, []byte(headerText+lineText(0, "turn/start", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	if _, err := Read(t.Context(), path, func(Line) error { return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, path, func(Line) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), path+"x", nil); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	h, err := ReadHeader(path)
	if err != nil || h.ID != "s1" || h.Cwd != "/w" {
		t.Fatalf("%+v, %v", h, err)
	}
}

// Damage that only a fold sees is told with its place, like any other.
func TestDamageThatAFoldFindsHasItsPlace(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "home"))
	path := closed(t, create(t, s, 3))
	apply := func(e session.Event) error {
		if e.Seq == 1 {
			return fmt.Errorf("%w: a part of it", session.ErrDamaged)
		}
		return nil
	}
	l, err := s.Own(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, readErr := ReadEvents(t.Context(), path, apply)
	for _, err := range []error{l.Replay(t.Context(), apply), readErr} {
		var at *DamageError
		if !errors.As(err, &at) || at.Line != 3 || at.Offset == 0 || at.Path != path || at.Reason != "a part of it" {
			t.Errorf("%v", err)
		}
	}
	closed(t, l)
}
