package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"deepseek/internal/session"
)

// decodeParams reads parameters into a struct, strictly: names are exact, what
// is not known is refused, what has no omitempty or omitzero has to be there. The error
// names the path of what is wrong.
func decodeParams(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := checkValue("", member(raw), reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return invalid("", "%v", session.PlainJSON(err))
	}
	return nil
}

// invalid says what is wrong with the parameter at a path.
func invalid(path, format string, args ...any) *Error {
	if path == "" {
		path = "params"
	}
	return &Error{Code: CodeInvalidParams, Message: path + ": " + fmt.Sprintf(format, args...), Path: path}
}

// checkValue compares valid JSON with the type it is meant for.
func checkValue(path string, raw member, t reflect.Type) error {
	raw = bytes.TrimSpace(raw)
	got := kindOfJSON(raw)
	var want string
	switch t.Kind() {
	case reflect.Pointer:
		if got == "null" {
			return nil
		}
		return checkValue(path, raw, t.Elem())
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "a boolean"
	case reflect.Int64: // a Whole
		want = "a number"
	case reflect.Slice:
		want = "an array"
	case reflect.Struct:
		want = "an object"
	default:
		return fmt.Errorf("parameters of kind %s have no check", t.Kind())
	}
	if got != want {
		return invalid(path, "got %s, want %s", got, want)
	}
	switch t.Kind() {
	case reflect.Int64:
		if _, ok := whole(raw); !ok {
			return invalid(path, "must be a whole number of at most 64 bits, is %s", clip(raw))
		}
	case reflect.Slice:
		var items []member
		if err := json.Unmarshal(raw, &items); err != nil {
			return invalid(path, "%v", err)
		}
		for i, item := range items {
			if err := checkValue(fmt.Sprintf("%s[%d]", path, i), item, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		return checkObject(path, raw, t)
	}
	return nil
}

// field is one member of an object.
type field struct {
	typ      reflect.Type
	optional bool
	full     bool // a text that must not be empty
}

func checkObject(path string, raw member, t reflect.Type) error {
	var members map[string]member
	if err := json.Unmarshal(raw, &members); err != nil {
		return invalid(path, "%v", err)
	}
	at := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	fields := map[string]field{}
	collect(t, fields)
	names := slices.Sorted(maps.Keys(fields))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f, ok := fields[name]
		if !ok {
			known := "known are " + strings.Join(names, ", ")
			if len(names) == 0 {
				known = "there are no parameters"
			}
			return invalid(at(clip([]byte(name))), "unknown; %s", known)
		}
		if err := checkValue(at(name), members[name], f.typ); err != nil {
			return err
		}
		if f.full && string(members[name]) == `""` {
			return invalid(at(name), "is empty")
		}
	}
	for _, name := range names {
		if _, ok := members[name]; !ok && !fields[name].optional {
			return invalid(at(name), "is missing")
		}
	}
	return nil
}

// collect lists the members of a struct, those of embedded ones with its own.
func collect(t reflect.Type, into map[string]field) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			collect(f.Type, into)
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		into[name] = field{f.Type, rest == "omitempty" || rest == "omitzero", f.Tag.Get("empty") == "no"}
	}
}

// Whole is a whole number, however its JSON is written: 60, 60.0 and 6e1 are one.
type Whole int64

// UnmarshalJSON implements json.Unmarshaler.
func (w *Whole) UnmarshalJSON(raw []byte) error {
	n, ok := whole(raw)
	if !ok {
		return fmt.Errorf("%s is no whole number of at most 64 bits", clip(raw))
	}
	*w = Whole(n)
	return nil
}

func whole(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	const exact = 1 << 53 // from here on not every whole number has a value of its own
	f, err := strconv.ParseFloat(string(raw), 64)
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < exact
}

func kindOfJSON(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// clip cuts a value to what a message bears.
func clip(b []byte) string {
	const limit = 60
	r := []rune(string(b))
	if len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return string(r)
}
