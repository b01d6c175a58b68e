package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deepseek/internal/fakellm"
	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

var thorough = flag.Bool("thorough", false, "let the tests of crashes and damage try all that they can think of")

// often is how often something is tried.
func often(thoroughly, usually int) int {
	if *thorough {
		return thoroughly
	}
	return usually
}

// written is a session with tools, a pending question and its answer, as a run left it.
func written(t *testing.T) (*killed, []byte) {
	t.Helper()
	k := newKilled(t, newRandom(0))
	k.server.Close()
	ask := `{"questions":[{"id":"port","question":"Which port?","options":[{"label":"80"},{"label":"90"}]}],"timeout":1}`
	server := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{
		{Reasoning: "look", Calls: []fakellm.Call{{Name: "read", Arguments: `{"file_path":"a.txt"}`}, {Name: "glob", Arguments: `{"pattern":"*"}`}}},
		{Calls: []fakellm.Call{{ID: "q1", Name: session.AskTool, Arguments: fakellm.Arguments(ask)}}},
		{Text: "wörds, and \"more\""},
	}})
	k.environ = append(k.environ, "DEEPSEEK_BASE_URL="+server.URL)
	r := k.run()
	k.find(r)
	<-r.done
	data, err := os.ReadFile(k.logPath)
	if err != nil || status(r.cmd.ProcessState) != 0 {
		t.Fatalf("%v\n%s", err, r.err.String())
	}
	return k, data
}

// put makes data the log, with nothing beside it.
func (k *killed) put(data []byte) {
	if err := os.RemoveAll(filepath.Dir(k.logPath)); err != nil {
		k.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(k.logPath), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(k.logPath, data, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// tried runs a command and tells its exit code and what it wrote.
func (k *killed) tried(args ...string) (int, string) {
	cmd := k.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		k.t.Fatal(err)
	}
	return status(cmd.ProcessState), string(out)
}

// The log is cut at every byte of its last record and at some of those before:
// what was whole stays as it was, the rest is set aside, and the session goes on.
func TestTheLogIsCutAnywhere(t *testing.T) {
	t.Parallel()
	k, data := written(t)
	header := bytes.IndexByte(data, '\n') + 1
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	var cuts []int
	for at := len(data); at >= last; at -= often(1, 9) {
		cuts = append(cuts, at)
	}
	for range often(200, 6) {
		cuts = append(cuts, header+k.chance(last-header))
	}
	for _, at := range cuts {
		k.put(data[:at])
		if code, out := k.tried("send", k.id, "go on"); code != 0 {
			t.Fatalf("cut at %d: exit %d\n%s", at, code, out)
		}
		k.continued(data[:bytes.LastIndexByte(data[:at], '\n')+1], data[:at])
	}
	for range often(100, 2) { // and some by a run, whose requests are judged
		at := header + k.chance(last-header)
		k.put(data[:at])
		server := fakellm.Start(t, fakellm.Script{Steps: []fakellm.Step{{Text: "fine"}, {Text: "fine"}}})
		k.environ = append(k.environ, "DEEPSEEK_BASE_URL="+server.URL)
		if code, out := k.tried("run", "-q", "--session", k.id, "go on"); code != 0 {
			t.Fatalf("cut at %d: exit %d\n%s", at, code, out)
		}
		k.continued(data[:bytes.LastIndexByte(data[:at], '\n')+1], data[:at])
	}
	for _, at := range []int{0, 1, header / 2, header - 1} {
		k.put(data[:at])
		k.refused("line 1, byte 0", "send", k.id, "go on")
	}
}

// continued: the log is sound, begins with what was whole, and what was not is
// beside it.
func (k *killed) continued(whole, cut []byte) {
	k.t.Helper()
	got, err := os.ReadFile(k.logPath)
	if err != nil || !bytes.HasPrefix(got, whole) || len(got) == len(whole) || got[len(got)-1] != '\n' {
		k.t.Fatalf("cut at %d: %v\n%s", len(cut), err, got)
	}
	if _, err := logstore.ReadEvents(k.t.Context(), k.logPath, func(session.Event) error { return nil }); err != nil {
		k.t.Fatalf("cut at %d: %v", len(cut), err)
	}
	torn, err := os.ReadFile(logstore.TornPath(k.logPath))
	if tail := cut[len(whole):]; !bytes.Equal(torn, tail) || (err != nil) != (len(tail) == 0) {
		k.t.Fatalf("cut at %d: set aside was %q, %v", len(cut), torn, err)
	}
	if code, out := k.tried("sessions", "check", k.id); code != 0 {
		k.t.Fatalf("cut at %d: check: exit %d\n%s", len(cut), code, out)
	}
}

// refused: the command exits with 6 and says where, and no byte has changed.
func (k *killed) refused(where string, args ...string) {
	k.t.Helper()
	before, err := os.ReadFile(k.logPath)
	if err != nil {
		k.t.Fatal(err)
	}
	code, out := k.tried(args...)
	if code != 6 || !strings.Contains(out, where) || strings.Contains(out, "goroutine") {
		k.t.Errorf("%v: exit %d, not 6 and %q:\n%s", args, code, where, out)
	}
	after, err := os.ReadFile(k.logPath)
	if err != nil || !bytes.Equal(before, after) {
		k.t.Errorf("%v changed the file: %v", args, err)
	}
	if beside, err := os.ReadDir(filepath.Dir(k.logPath)); err != nil || len(beside) != 1 {
		k.t.Errorf("%v left something beside the file: %v, %v", args, beside, err)
	}
}

// What only damage or a newer version can have done is refused by name and
// place, by every command that would write and by the check.
func TestDamageIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	k, data := written(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	offset := func(line int) int { return len(bytes.Join(lines[:line-1], nil)) }
	with := func(line int, text string) []byte { // in the place of a line, from 1
		return bytes.Join([][]byte{bytes.Join(lines[:line-1], nil), []byte(text), bytes.Join(lines[line:], nil)}, nil)
	}
	at := func(line int) string { return fmt.Sprintf("line %d, byte %d", line, offset(line)) }
	for _, c := range []struct {
		name, where string
		data        []byte
	}{
		{"a line twice", at(6), with(5, string(lines[4])+string(lines[4]))},
		{"a line missing", at(5), with(5, "")},
		{"no JSON", at(5), with(5, "{]\n")},
		{"a blank line", at(5), with(5, "\n")},
		{"zeros", at(5), with(5, strings.Repeat("\x00", 4096)+"\n")},
		{"two lines in one", at(5), with(5, strings.TrimSuffix(string(lines[4]), "\n"))},
		{"a first part", at(5), with(5, string(lines[4][:len(lines[4])/2])+"\n")},
		{"an unknown type", `"x/new" at line 5`, with(5, `{"seq":3,"type":"x/new","time":1,"data":{}}`+"\n")},
		{"a newer version", "newer deepseek", with(1, strings.Replace(string(lines[0]), `"version":1`, `"version":2,"cwd":7`, 1))},
		{"no header", "line 1, byte 0", with(1, "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			k.t = t
			k.put(c.data)
			k.refused(c.where, "send", k.id, "go on")
			k.refused(c.where, "run", "--session", k.id, "go on")
			k.refused(c.where, "answer", k.id, "q1", "--queue", "--select", "port=90")
			k.refused(c.where, "sessions", "check", k.id)
		})
	}
	k.t = t
	seq := len(lines) - 1
	k.put(fmt.Appendf(bytes.Clone(data), `{"seq":%d,"type":"x/new","time":1,"data":{"a":1},"ignorable":true}`+"\n", seq))
	if code, out := k.tried("send", k.id, "go on"); code != 0 {
		t.Errorf("an ignorable event: exit %d\n%s", code, out)
	}
	if after, err := os.ReadFile(k.logPath); err != nil || !bytes.Contains(after, []byte(`"x/new"`)) {
		t.Errorf("an ignorable event was not kept: %v", err)
	}
}

var place = regexp.MustCompile(`line (\d+), byte (\d+)`)

// A flipped bit is found, or makes another whole log: never a panic, another
// exit code, or another change of the file.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	k, data := written(t)
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	for range often(1000, 10) {
		at, bit := k.chance(last), byte(1)<<k.chance(8)
		bad := bytes.Clone(data)
		bad[at] ^= bit
		k.put(bad)
		code, out := k.tried("send", k.id, "go on")
		after, err := os.ReadFile(k.logPath)
		if err != nil || !bytes.HasPrefix(after, bad) || code != 0 && len(after) > len(bad) {
			t.Errorf("bit %d of byte %d: the file was changed, %v", bit, at, err)
		}
		newer := strings.Contains(out, "newer deepseek") // a bit of the version or of a type
		if code != 0 && (code != 6 || !newer && !place.MatchString(out)) || strings.Contains(out, "goroutine") {
			t.Errorf("bit %d of byte %d (%q): exit %d\n%s", bit, at, data[max(0, at-20):at+1], code, out)
		}
	}
}
