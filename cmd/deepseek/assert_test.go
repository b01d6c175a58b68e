package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

func assertCommands() map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){"jsonl": cmdJSONL, "json": cmdJSON}
}

// cmdJSONL: jsonl [-exact] FILE TYPE…. Each line of the log is one JSON object,
// the last one ends with a newline, seq has no gap, and the events of the types
// come in that order, with -exact and nothing else between.
func cmdJSONL(ts *testscript.TestScript, neg bool, args []string) {
	exact := len(args) > 0 && args[0] == "-exact"
	if exact {
		args = args[1:]
	}
	usage(ts, neg, len(args) > 0, "jsonl [-exact] FILE TYPE…")
	text := ts.ReadFile(args[0])
	if !strings.HasSuffix(text, "\n") {
		ts.Fatalf("%s: the last line is not whole", args[0])
	}
	var types []string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var e struct {
			Seq  *int
			Type string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			ts.Fatalf("%s:%d: %v: %s", args[0], i+1, err, line)
		}
		switch {
		case i == 0 && e.Type != "session":
			ts.Fatalf("%s: the first line is no header: %s", args[0], line)
		case i > 0 && (e.Seq == nil || *e.Seq != i-1):
			ts.Fatalf("%s:%d: seq is not %d: %s", args[0], i+1, i-1, line)
		case i > 0:
			types = append(types, e.Type)
		}
	}
	if want := strings.Join(args[1:], "\n"); exact && strings.Join(types, "\n") != want {
		ts.Fatalf("%s has the events\n%s\nnot\n%s", args[0], strings.Join(types, "\n"), want)
	}
	at := 0
	for _, want := range args[1:] {
		for at < len(types) && types[at] != want {
			at++
		}
		if at == len(types) {
			ts.Fatalf("%s has no %s in that place; it has\n%s", args[0], want, strings.Join(types, "\n"))
		}
		at++
	}
}

var condition = regexp.MustCompile(`^([A-Za-z0-9_.-]*)(=|~|!)((?s).*)$`)

// cmdJSON: json FILE[:LINE] CONDITION…. FILE may be stdout. LINE counts from 1,
// from the end where it is negative. A path is keys and indexes with dots
// between, indexes from the end where negative, and "n" at its end the length.
// VALUE is the text of a string, else JSON. A dot in RE is any character.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) > 1, "json FILE[:LINE] PATH=VALUE|PATH~RE|PATH! …")
	file, number, _ := strings.Cut(args[0], ":")
	text := ts.ReadFile(file)
	if number != "" {
		n, err := strconv.Atoi(number)
		ts.Check(err)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if n < 0 {
			n += len(lines) + 1
		}
		if n < 1 || n > len(lines) {
			ts.Fatalf("%s has %d lines", file, len(lines))
		}
		text = lines[n-1]
	}
	var doc any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		ts.Fatalf("%s is not one JSON value: %v", args[0], err)
	}
	for _, c := range args[1:] {
		m := condition.FindStringSubmatch(c)
		if m == nil {
			ts.Fatalf("%q is no condition", c)
		}
		v, ok := walk(doc, m[1])
		got := shown(v)
		switch {
		case m[2] == "!" && ok:
			ts.Fatalf("%s: %s is there: %s", args[0], m[1], got)
		case m[2] != "!" && !ok:
			ts.Fatalf("%s: there is no %s in %s", args[0], m[1], cut(shown(doc)))
		case m[2] == "=" && got != m[3]:
			ts.Fatalf("%s: %s is %s, not %s", args[0], m[1], got, m[3])
		case m[2] == "~" && !regexp.MustCompile("(?s)"+m[3]).MatchString(got):
			ts.Fatalf("%s: %s does not match %q: %s", args[0], m[1], m[3], got)
		}
	}
}

func walk(v any, path string) (any, bool) {
	if path == "" {
		return v, true
	}
	for _, key := range strings.Split(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			if key == "n" {
				v = float64(len(at))
				continue
			}
			i, err := strconv.Atoi(key)
			if i < 0 {
				i += len(at)
			}
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func shown(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

func cut(s string) string {
	if len(s) > 2000 {
		return s[:2000] + "…"
	}
	return s
}
