package session

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PlainJSON words an error of decoding JSON for a person: where a member has
// another type than ours, the words of encoding/json name types of this program,
// which say nothing to anybody. What wraps the error keeps its own words. Any
// other error, nil included, is returned as it is.
func PlainJSON(err error) error {
	var typ *json.UnmarshalTypeError
	if !errors.As(err, &typ) {
		return err
	}
	return &plainJSON{strings.Replace(err.Error(), typ.Error(), typeWords(typ), 1), err}
}

// plainJSON is an error in other words.
type plainJSON struct {
	text string
	err  error
}

func (e *plainJSON) Error() string { return e.text }
func (e *plainJSON) Unwrap() error { return e.err }

func typeWords(e *json.UnmarshalTypeError) string {
	var path []string
	for name := range strings.SplitSeq(e.Field, ".") {
		if r, _ := utf8.DecodeRuneInString(name); name != "" && !unicode.IsUpper(r) { // else an embedded type
			path = append(path, name)
		}
	}
	where := "it"
	if len(path) > 0 {
		where = strings.Join(path, ".")
	}
	got, want := jsonKind(e.Value), typeKind(e.Type)
	if got == want || strings.HasPrefix(e.Value, "number ") {
		return where + " is the " + e.Value + ", which is not " + want
	}
	return where + " is " + got + ", not " + want
}

func jsonKind(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	switch kind {
	case "array", "object":
		return "an " + kind
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

func typeKind(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "what it should be"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number in range"
	case reflect.Float32, reflect.Float64:
		return "a number in range"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	}
	return "an object"
}
