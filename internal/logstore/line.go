package logstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"deepseek/internal/session"
)

// Line is one event as it stands in the file.
type Line struct {
	Seq    int64
	Type   string
	Time   int64  // ms since the epoch
	Raw    []byte // the whole line without its newline; see the giver for how long it is valid
	Offset int64  // of the line in the file
	Number int    // of the line in the file, from 1; 0 from a Cursor

	path string
}

// Event decodes the line and checks that it is one whole JSON value. The event
// does not refer to Raw. A line that does not decode is a *DamageError.
func (l Line) Event() (session.Event, error) {
	e, err := decode(l.Raw)
	if err != nil {
		return e, &DamageError{Path: l.path, Line: l.Number, Offset: l.Offset, Reason: err.Error()}
	}
	return e, nil
}

// Payload is what stands where the event's data stands, if nothing follows it. It
// is neither copied nor checked: valid as long as Raw, and perhaps no JSON at all.
func (l Line) Payload() ([]byte, bool) {
	p, ok := parsePrefix(l.Raw)
	if !ok || p.rest[len(p.rest)-1] != '}' {
		return nil, false
	}
	return p.rest[:len(p.rest)-1], true
}

// Damaged gives damage that a fold found in the line's event its place, as a
// *DamageError. Other errors, and nil, stay as they are.
func (l Line) Damaged(err error) error {
	var placed *DamageError
	if !errors.Is(err, session.ErrDamaged) || errors.As(err, &placed) {
		return err
	}
	reason := strings.TrimPrefix(err.Error(), session.ErrDamaged.Error()+": ")
	return &DamageError{Path: l.path, Line: l.Number, Offset: l.Offset, Reason: reason}
}

// prefix is what can be told of a line without decoding it.
type prefix struct {
	seq  int64
	typ  []byte
	time int64
	rest []byte // from the first byte of data on
}

// parsePrefix reads the beginning that AppendLine writes:
//
//	{"seq":n,"type":"…","time":ms,"data":{…
//
// It reports false for everything else, valid or not.
func parsePrefix(line []byte) (p prefix, ok bool) {
	if p.rest, ok = bytes.CutPrefix(line, []byte(`{"seq":`)); !ok {
		return p, false
	}
	if p.seq, p.rest, ok = cutInt(p.rest); !ok {
		return p, false
	}
	if p.rest, ok = bytes.CutPrefix(p.rest, []byte(`,"type":"`)); !ok {
		return p, false
	}
	end := bytes.IndexByte(p.rest, '"')
	if end <= 0 || bytes.IndexByte(p.rest[:end], '\\') >= 0 {
		return p, false
	}
	p.typ, p.rest = p.rest[:end], p.rest[end:]
	if p.rest, ok = bytes.CutPrefix(p.rest, []byte(`","time":`)); !ok {
		return p, false
	}
	if p.time, p.rest, ok = cutInt(p.rest); !ok {
		return p, false
	}
	if p.rest, ok = bytes.CutPrefix(p.rest, []byte(`,"data":`)); !ok {
		return p, false
	}
	return p, len(p.rest) > 0 && p.rest[0] == '{'
}

// cutInt reads a JSON integer of at most 18 digits.
func cutInt(b []byte) (n int64, rest []byte, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && b[0] == '-' {
		i, negative = 1, true
	}
	first := i
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	digits := i - first
	if digits == 0 || digits > 18 || (digits > 1 && b[first] == '0') {
		return 0, b, false
	}
	if negative {
		n = -n
	}
	return n, b[i:], true
}

// decode is ParseEvent, many times as fast for a line that AppendLine wrote
// without the optional keys at its end.
func decode(line []byte) (session.Event, error) {
	if p, ok := parsePrefix(line); ok && plain(string(p.typ)) {
		end := skipValue(p.rest, 1)
		if end > 0 && len(p.rest) == end+1 && p.rest[end] == '}' {
			return session.Event{Seq: p.seq, Type: string(p.typ), Time: p.time, Data: bytes.Clone(p.rest[:end])}, nil
		}
	}
	if !json.Valid(line) {
		return session.Event{}, errors.New("not one whole JSON value")
	}
	return session.ParseEvent(line)
}

// plain tells whether a type reads the same in quotes.
func plain(typ string) bool {
	for i := range len(typ) {
		if c := typ[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return typ != ""
}
