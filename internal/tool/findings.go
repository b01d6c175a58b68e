package tool

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// findings collects what is wrong with one value, each naming path, limit and value.
type findings struct {
	list []string
}

func (f *findings) add(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = Brief(path) + ": " + text
	}
	f.list = append(f.list, text)
}

func (f *findings) walk(n *node, path string, v any) {
	s := n.schema
	if got := typeOf(v); n.types != nil && !slices.ContainsFunc(n.types, func(want string) bool { return fits(got, want, v) }) {
		f.add(path, "got %s, want %s; the value is %s", got, strings.Join(n.types, " or "), short(v))
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		choices := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			choices[i] = short(e)
		}
		f.add(path, "must be one of %s; the value is %s", strings.Join(choices, ", "), short(v))
		return
	}
	before := len(f.list)
	switch x := v.(type) {
	case float64:
		if s.Minimum != nil && x < *s.Minimum {
			f.add(path, "must be at least %s, is %s", short(*s.Minimum), short(x))
		}
		if s.Maximum != nil && x > *s.Maximum {
			f.add(path, "must be at most %s, is %s", short(*s.Maximum), short(x))
		}
	case string:
		f.size(path, "characters", utf8.RuneCountInString(x), s.MinLength, s.MaxLength)
	case []any:
		f.size(path, "items", len(x), s.MinItems, s.MaxItems)
		if n.items != nil {
			for i, item := range x {
				f.walk(n.items, path+"["+strconv.Itoa(i)+"]", item)
			}
		}
	case map[string]any:
		f.object(n, path, x)
	}
	if len(f.list) > before {
		return // what the library would add says the same again
	}
	if err := n.rest.Validate(v); err != nil {
		f.add(path, "%s", cutRunes(strings.TrimPrefix(err.Error(), "validating root: "), 300))
	}
}

func (f *findings) object(n *node, path string, x map[string]any) {
	for _, name := range n.schema.Required {
		if _, ok := x[name]; !ok {
			f.add(path, "%s is missing", name)
		}
	}
	for _, name := range sortedKeys(x) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		if p := n.properties[name]; p != nil {
			f.walk(p, at, x[name])
		} else if _, known := n.schema.Properties[name]; !known && closed(n.schema) {
			f.add(path, "%s is unknown, known are %s", Brief(name), strings.Join(sortedKeys(n.schema.Properties), ", "))
		}
	}
}

func (f *findings) size(path, what string, n int, least, most *int) {
	if least != nil && n < *least {
		f.add(path, "must have at least %d %s, has %d", *least, what, n)
	}
	if most != nil && n > *most {
		f.add(path, "must have at most %d %s, has %d", *most, what, n)
	}
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

func fits(got, want string, v any) bool {
	if want == "integer" {
		x, ok := v.(float64)
		return ok && x == math.Trunc(x)
	}
	return got == want
}

// short is a value as JSON, cut to what a line bears.
func short(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return cutRunes(string(raw), 80)
}

// Brief is the beginning of a name that a model made up, for messages about it:
// it may be as long as a file.
func Brief(name string) string { return cutRunes(name, 200) }

func cutRunes(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}
