package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Version is the log version that this build writes and the highest it reads.
const Version = 1

// Header is line 1 of a session file.
type Header struct {
	Type            string `json:"type"` // always "session"
	Version         int    `json:"version"`
	ID              string `json:"id"`
	CreatedAt       int64  `json:"createdAt"` // ms since the epoch
	Cwd             string `json:"cwd"`
	DelegationDepth int    `json:"delegationDepth"`
	ParentSession   string `json:"parentSession,omitempty"`
	SeedLength      *int64 `json:"seedLength,omitempty"` // events taken over from the parent session, by writers that do so
	Origin          string `json:"origin,omitempty"`     // OriginSubagent or absent
}

// OriginSubagent is the origin of a session that an agent began by delegating.
const OriginSubagent = "subagent"

// Event is every other line of a session file. Its layout on disk is
//
//	{"seq":n,"type":"…","time":ms,"data":{…}[,"surfaceOp":{…}][,"ignorable":true]}
//
// with the keys in that order, so that a reader can tell seq and type from a
// prefix without decoding the rest.
type Event struct {
	Seq       int64           `json:"seq"`
	Type      string          `json:"type"`
	Time      int64           `json:"time"` // ms since the epoch
	Data      json.RawMessage `json:"data"`
	SurfaceOp *SurfaceOp      `json:"surfaceOp,omitempty"`
	Ignorable bool            `json:"ignorable,omitempty"`

	read *reading // of the folds that share it; nil without
}

// SurfaceOp marks the user/message by which compaction replaces others.
type SurfaceOp struct {
	Op      string `json:"op"` // OpReplace
	FromSeq int64  `json:"fromSeq"`
	ToSeq   int64  `json:"toSeq"` // inclusive
}

// OpReplace is the one operation there is.
const OpReplace = "replace"

// Errors of reading a header; the command line maps them to exit code 6.
var (
	ErrTooNew  = errors.New("written by a newer deepseek")
	ErrDamaged = errors.New("damaged session file")
)

// NewEvent encodes data as the payload of an event. Seq is assigned by the log.
// It fails only for values that JSON cannot hold, which is a bug of the caller.
func NewEvent(typ string, timeMS int64, data any) (Event, error) {
	raw, err := Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encode %s: %w", typ, err)
	}
	return Event{Type: typ, Time: timeMS, Data: raw}, nil
}

// Marshal is JSON as the log holds it: compact, with <, > and & as themselves.
// Invalid UTF-8 becomes U+FFFD.
func Marshal(v any) ([]byte, error) {
	if m, ok := v.(AssistantMessage); ok {
		return m.encode()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Shared is the event for several folds that one goroutine applies it to: its
// payload is decoded once for all of them. It changes nothing where that is so already.
func (e Event) Shared() Event {
	if e.read == nil {
		e.read = &reading{}
	}
	return e
}

// AppendLine appends the event as one line of the file, newline included.
func (e Event) AppendLine(dst []byte) []byte {
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"type":`...)
	dst = strconv.AppendQuote(dst, e.Type) // types are plain ASCII words
	dst = append(dst, `,"time":`...)
	dst = strconv.AppendInt(dst, e.Time, 10)
	dst = append(dst, `,"data":`...)
	dst = append(dst, e.Data...)
	if op := e.SurfaceOp; op != nil {
		dst = append(dst, `,"surfaceOp":{"op":"replace","fromSeq":`...)
		dst = strconv.AppendInt(dst, op.FromSeq, 10)
		dst = append(dst, `,"toSeq":`...)
		dst = strconv.AppendInt(dst, op.ToSeq, 10)
		dst = append(dst, '}')
	}
	if e.Ignorable {
		dst = append(dst, `,"ignorable":true`...)
	}
	return append(dst, '}', '\n')
}

// ParseHeader decodes line 1. A higher version is ErrTooNew before any check
// of the shape; everything else that does not fit is ErrDamaged.
func ParseHeader(line []byte) (Header, error) {
	var first struct {
		Version json.RawMessage `json:"version"`
	}
	var shape *json.UnmarshalTypeError
	if err := json.Unmarshal(line, &first); err != nil && !errors.As(err, &shape) {
		return Header{}, fmt.Errorf("%w: the header is no JSON object: %w", ErrDamaged, err)
	}
	// What is no number is 0, and what is too big for one is infinite.
	if v, _ := strconv.ParseFloat(string(first.Version), 64); v > Version {
		return Header{}, fmt.Errorf("%w (log version %v, this one reads up to %d)", ErrTooNew, v, Version)
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return Header{}, fmt.Errorf("%w: header: %w", ErrDamaged, PlainJSON(err))
	}
	if h.Type != "session" || h.Version < 1 || h.ID == "" {
		return Header{}, fmt.Errorf("%w: line 1 is no session header", ErrDamaged)
	}
	return h, nil
}

// ParseEvent decodes one line after the header, without its newline. It checks
// the envelope only; whether the type is known is KnownType's.
func ParseEvent(line []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, PlainJSON(err)
	}
	if e.Type == "" {
		return Event{}, errors.New("an event without a type")
	}
	if len(e.Data) == 0 || e.Data[0] != '{' {
		return Event{}, fmt.Errorf("%s: data is no object", e.Type)
	}
	return e, nil
}
