package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

// event makes an event without seq.
func event(tb testing.TB, typ string, data any) session.Event {
	tb.Helper()
	e, err := session.NewEvent(typ, 1_790_000_000_000, data)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// talk is a finished turn about a task, with that many tool calls.
func talk(tb testing.TB, task string, calls int) []session.Event {
	tb.Helper()
	m := session.NewUserMessage("u1", task, session.Source{Kind: session.SourceUser})
	events := []session.Event{
		event(tb, session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextTurn, Inserted: []session.UserMessage{m}}),
		event(tb, session.TypeTurnStart, session.TurnStart{Turn: 1}),
		event(tb, session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextTurn, RemovedCount: 1, Inserted: []session.UserMessage{}}),
		event(tb, session.TypeStepStart, session.StepMark{Turn: 1, Step: 1}),
		event(tb, session.TypeUserMessage, m),
	}
	for range calls {
		events = append(events,
			event(tb, session.TypeToolCall, session.ToolCall{Turn: 1, Step: 1, CallID: "c", Name: "read", Arguments: "{}"}),
			event(tb, session.TypeToolResult, session.ToolResult{Turn: 1, Step: 1, Message: session.ToolMessage{ID: "r", Role: "tool", ToolCallID: "c", Content: strings.Repeat("words ", 100)}}))
	}
	return append(events,
		event(tb, session.TypeStepEnd, session.StepMark{Turn: 1, Step: 1}),
		event(tb, session.TypeTurnEnd, session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndCompleted}}))
}

func (b box) store() *logstore.Store { return logstore.New(b.home) }

// ticks makes the ids of a test's sessions, one a second.
var ticks atomic.Int64

// create makes a session of the box with these events. What the header leaves
// open is filled in.
func (b box) create(tb testing.TB, h session.Header, events []session.Event) (path string) {
	tb.Helper()
	if h.ID == "" {
		h.ID = b.store().NewID(time.Unix(1_790_000_000+ticks.Add(1), 0))
	}
	if h.Cwd == "" {
		h.Cwd = b.cwd
	}
	if h.CreatedAt == 0 {
		h.CreatedAt = 1_790_000_000_000
	}
	log, err := b.store().Create(h, events)
	if err != nil {
		tb.Fatal(err)
	}
	if err := log.Close(); err != nil {
		tb.Fatal(err)
	}
	return log.Path()
}

func readFile(tb testing.TB, path string) string {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

func (b box) rows(t *testing.T, args ...string) []sessionRow {
	t.Helper()
	var rows []sessionRow
	got := b.call(append([]string{"sessions", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(got.out), &rows); err != nil || got.code != ExitOK || got.err != "" {
		t.Fatalf("%v %+v", err, got)
	}
	return rows
}

func TestSessionsAsJSON(t *testing.T) {
	b := newBox(t)
	if got := b.call("sessions", "--json"); got.code != ExitOK || got.out != "[]\n" {
		t.Errorf("none: %+v", got)
	}
	older := b.create(t, session.Header{}, talk(t, "  the\n first task <&>", 1))
	events := append(asked(t, "the second", "call_1", "call_2", "call_3"),
		queue(t, session.NextStep, 0, reply(t, "m1", "call_2", "9090")), event(t, session.TypeUserMessage, reply(t, "m2", "call_3", "8080")))
	newer := b.create(t, session.Header{}, events)
	child := b.create(t, session.Header{Origin: originSubagent, ParentSession: fileID(newer), DelegationDepth: 1}, talk(t, "delegated", 0))
	fork := b.create(t, session.Header{ParentSession: fileID(newer)}, append(append(talk(t, "inherited", 0), event(t, session.TypeEndSeed, struct{}{})), talk(t, "its own", 0)...))
	want := []sessionRow{
		{ID: fileID(fork), Path: fork, Task: "its own", ParentSession: fileID(newer)},
		{ID: fileID(newer), Path: newer, Task: "the second", Questions: 1},
		{ID: fileID(older), Path: older, Task: "the first task <&>"},
	}
	for i := range want {
		want[i].Cwd, want[i].CreatedAt, want[i].UpdatedAt = b.cwd, 1_790_000_000_000, 1_790_000_000_000
	}
	if rows := b.rows(t); !reflect.DeepEqual(rows, want) {
		t.Errorf("%+v", rows)
	}
	if rows := b.rows(t, "--all"); len(rows) != 4 || rows[1].ID != fileID(child) || rows[1].ParentSession != fileID(newer) || rows[1].Task != "delegated" {
		t.Errorf("%+v", rows)
	}
	if one, two := b.call("sessions", "--json"), b.call("sessions", "list", "--json"); one != two {
		t.Errorf("%+v\n%+v", one, two)
	}
	b.serve(t, older)
	if rows := b.rows(t); !rows[2].Live || rows[1].Live {
		t.Errorf("%+v", rows)
	}
}

func TestADamagedSessionIsARow(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(string) string
		want   string
	}{
		{"header", func(s string) string { return "{" + s }, "line 1"},
		{"middle", func(s string) string { return strings.Replace(s, `{"seq":3`, `{"seq":7`, 1) }, "line 5"},
		{"newer", func(s string) string { return strings.Replace(s, `"version":1`, `"version":9`, 1) }, "newer deepseek"},
		{"unknown type", func(s string) string { return strings.Replace(s, `"step/end"`, `"step/fin"`, 1) }, "step/fin"},
		{"empty", func(string) string { return "" }, "no whole header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			bad := b.create(t, session.Header{}, asked(t, "x", "call_1"))
			b.create(t, session.Header{}, talk(t, "sound", 0))
			b.write(t, bad, c.damage(readFile(t, bad)))
			rows := b.rows(t)
			if len(rows) != 2 || rows[0].Task != "sound" && rows[1].Task != "sound" {
				t.Fatalf("%+v", rows)
			}
			r := rows[0]
			if r.Task == "sound" {
				r = rows[1]
			}
			if r.ID != fileID(bad) || r.Path != bad || !strings.Contains(r.Error, c.want) {
				t.Errorf("%+v", r)
			}
			if got := b.call("sessions"); got.code != ExitOK || !strings.Contains(got.out, "unread") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestSessionsAsText(t *testing.T) {
	b := newBox(t)
	if got := b.call("sessions"); got.code != ExitOK || got.out != "" || !strings.Contains(got.err, "deepseek run TASK") {
		t.Errorf("none: %+v", got)
	}
	path := b.create(t, session.Header{}, asked(t, "port it to \x1b[2J the 日本語 "+strings.Repeat("and on ", 40), "call_1"))
	b.create(t, session.Header{Cwd: "/somewhere/quite/deep/in/a/tree/of/folders/that/has/a/long/name"}, talk(t, "short", 0))
	got := b.call("sessions")
	lines := strings.Split(got.out, "\n")
	if got.code != ExitOK || !strings.HasPrefix(lines[0], "session ") || len(lines) != 4 ||
		strings.Join(strings.Fields(lines[2])[2:8], " ") != "idle 1 "+b.cwd+" port it to" || !strings.HasPrefix(lines[2], fileID(path)) {
		t.Errorf("%s%s", got.out, got.err)
	}
	for _, columns := range []int{40, 50, 60, 80, 120, 200} {
		out := b.terminal(t, columns, "sessions")
		if strings.Contains(out, "\x1b") || strings.Count(out, "\n") != 3 {
			t.Errorf("%q", out)
		}
		for l := range strings.Lines(out) {
			if w := runewidth.StringWidth(strings.TrimRight(l, "\r\n")); w >= columns {
				t.Errorf("%d columns in a terminal of %d: %q", w, columns, l)
			}
		}
	}
}

func TestSessionsPath(t *testing.T) {
	b := newBox(t)
	path := b.create(t, session.Header{}, talk(t, "x", 0))
	for _, arg := range []string{fileID(path), fileID(path)[16:], "last", path} {
		if got := b.call("sessions", "path", arg); got.code != ExitOK || got.out != path+"\n" {
			t.Errorf("%s: %+v", arg, got)
		}
	}
	for _, args := range [][]string{{"sessions", "path"}, {"sessions", "path", "nosuchid"}, {"sessions", "pth"}, {"sessions", "list", "x"}, {"sessions", "rm"}} {
		if got := b.call(args...); got.code != ExitUsage || got.out != "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestSessionsCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(string) string
		code   int
		text   string
		json   string
	}{
		{"sound", func(s string) string { return s }, ExitOK, "ok: 10 events, 1 turn\n", `"ok":true,`},
		{"torn is no damage", func(s string) string { return s + `{"seq":10,"ty` }, ExitOK, "ok: 10 events, 1 turn\n", `"torn":13`},
		{"a gap", func(s string) string { return strings.Replace(s, `{"seq":3`, `{"seq":7`, 1) }, ExitDamaged, "line 5, byte ", `"events":3,"turns":1,"error":{"code":"SESSION_DAMAGED",`},
		{"damage behind the beginning of a line", func(s string) string { return strings.Replace(s, `"turn":1}}`, `"turn":1}`, 1) }, ExitDamaged, "line 3, byte ", `"line":3,"byte":`},
		{"an event of another shape", func(s string) string { return strings.Replace(s, `{"turn":1}`, `{"turn":[]}`, 1) }, ExitDamaged, "line 3, byte ", `"line":3,"byte":`},
		{"an inbox that does not fit", func(s string) string { return strings.Replace(s, `"removedCount":1`, `"removedCount":3`, 1) }, ExitDamaged, "line 4, byte ", `"line":4,"byte":`},
		{"newer", func(s string) string { return strings.Replace(s, `"version":1`, `"version":2`, 1) }, ExitDamaged, "newer", `"code":"SESSION_TOO_NEW"`},
		{"unknown type", func(s string) string { return strings.Replace(s, `"step/start"`, `"step/begin"`, 1) }, ExitDamaged, "line 5", `"line":5}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			path := b.create(t, session.Header{}, asked(t, "x", "call_1"))
			text := c.damage(readFile(t, path))
			b.write(t, path, text)
			got := b.call("sessions", "check", fileID(path))
			if got.code != c.code || !strings.Contains(got.out, c.text) || c.code != ExitOK && !strings.Contains(got.err, c.text) {
				t.Errorf("%+v", got)
			}
			asJSON := b.call("sessions", "check", path, "--json")
			if out := compact(t, asJSON.out); asJSON.code != c.code || !strings.Contains(out, c.json) || !strings.Contains(out, path) {
				t.Errorf("%+v", asJSON)
			}
			if readFile(t, path) != text {
				t.Error("checking changed the file")
			}
			if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
				t.Errorf("checking left %v", entries)
			}
		})
	}
}

// family makes a session with spilled output, a sub-agent, a sub-agent of that,
// and a session begun from it.
func (b box) family(t *testing.T) (root, child, grandchild, fork string) {
	t.Helper()
	root = b.create(t, session.Header{}, talk(t, "root", 1))
	child = b.create(t, session.Header{Origin: originSubagent, ParentSession: fileID(root)}, talk(t, "child", 1))
	grandchild = b.create(t, session.Header{Origin: originSubagent, ParentSession: fileID(child), Cwd: "/elsewhere"}, talk(t, "grandchild", 1))
	fork = b.create(t, session.Header{ParentSession: fileID(root)}, talk(t, "fork", 1))
	b.write(t, filepath.Join(logstore.SpillDir(root), "out.txt"), "spilled")
	b.write(t, filepath.Join(logstore.SpillDir(grandchild), "more.txt"), "spilled more")
	b.write(t, filepath.Join(logstore.DraftsDir(root), "draft"), "words")
	b.write(t, logstore.TornPath(root), "torn")
	return root, child, grandchild, fork
}

func TestSessionsExport(t *testing.T) {
	b := newBox(t)
	root, child, grandchild, _ := b.family(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(logstore.SpillDir(root), "link")); err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, root)
	b.write(t, root, whole+`{"seq":`)
	got := b.call("sessions", "export", fileID(root), "-o", "backups/new")
	dest := filepath.Join(b.cwd, "backups/new", fileID(root))
	if got.code != ExitOK || got.out != dest+"\n" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "link") {
		t.Fatalf("%+v", got)
	}
	want := map[string]string{
		fileID(root) + ".jsonl":                whole,
		fileID(child) + ".jsonl":               readFile(t, child),
		fileID(grandchild) + ".jsonl":          readFile(t, grandchild),
		fileID(root) + ".spill/out.txt":        "spilled",
		fileID(grandchild) + ".spill/more.txt": "spilled more",
	}
	found := map[string]string{}
	err := filepath.WalkDir(dest, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if mode := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if !d.IsDir() {
			name, err := filepath.Rel(dest, path)
			if err != nil {
				return err
			}
			found[name] = readFile(t, path)
		}
		return nil
	})
	if err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("%v\ngot  %v\nwant %v", err, slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(want)))
	}
	if got := b.call("sessions", "export", fileID(root), "-o", "backups/new"); got.code != ExitUsage || got.out != "" || !strings.Contains(got.err, "exists already") {
		t.Errorf("a second time: %+v", got)
	}
	copied := filepath.Join(dest, fileID(root)+".jsonl")
	if got := b.call("sessions", "check", copied); got.code != ExitOK {
		t.Errorf("the copy: %+v", got)
	}
	// A copy has its own family, which lies beside it.
	if got := b.call("sessions", "export", copied); got.code != ExitOK {
		t.Errorf("a copy of the copy: %+v", got)
	} else if entries, _ := os.ReadDir(strings.TrimSpace(got.out)); len(entries) != 5 {
		t.Errorf("%v", entries)
	}
}

func TestAnExportThatFailsLeavesNothing(t *testing.T) {
	b := newBox(t)
	root, child, _, _ := b.family(t)
	out := filepath.Join(b.cwd, "out")
	left := func() int {
		entries, err := os.ReadDir(out)
		if err != nil {
			return 0
		}
		return len(entries)
	}
	b.write(t, child, strings.Replace(readFile(t, child), `{"seq":3`, `{"seq":7`, 1))
	if got := b.call("sessions", "export", fileID(child), "-o", out); got.code != ExitDamaged || left() != 0 {
		t.Errorf("damaged: %+v, %d left", got, left())
	}
	if got := b.call("sessions", "export", fileID(root), "-o", out); got.code != ExitOK || !strings.Contains(got.err, "as it is") || left() != 1 {
		t.Errorf("with a damaged sub-agent: %+v, %d left", got, left())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(Signal{syscall.SIGINT})
	if _, err := (exporter{}).export(ctx, []string{child, root}, filepath.Join(b.cwd, "two")); err == nil {
		t.Error("an ended context does not end it")
	}
	if entries, _ := os.ReadDir(filepath.Join(b.cwd, "two")); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
	b.write(t, filepath.Join(b.cwd, "file"), "")
	if got := b.call("sessions", "export", fileID(root), "-o", "file"); got.code != ExitUsage {
		t.Errorf("into a file: %+v", got)
	}
}

func TestSessionsRm(t *testing.T) {
	b := newBox(t)
	root, _, grandchild, fork := b.family(t)
	other := b.create(t, session.Header{}, talk(t, "other", 0))
	files := func() (names []string) {
		for _, dir := range []string{filepath.Dir(root), filepath.Dir(grandchild)} {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, e.Name())
			}
		}
		return names
	}
	before := files()
	unchanged := func(what string) {
		if now := files(); !reflect.DeepEqual(now, before) {
			t.Errorf("%s: %v", what, now)
		}
	}
	if got := b.call("sessions", "rm", fileID(root), "nosuchid"); got.code != ExitUsage {
		t.Errorf("%+v", got)
	}
	unchanged("all are located first")

	b.env = append(b.env, "DEEPSEEK_TOOL=1")
	if got := b.call("sessions", "rm", fileID(root)); got.code != ExitUsage || !strings.Contains(got.err, CodeCallerIsTool) {
		t.Errorf("%+v", got)
	}
	b.env = b.env[:len(b.env)-1]
	unchanged("inside a tool")

	notes := filepath.Join(b.cwd, "notes.jsonl")
	b.write(t, notes, "{}\n")
	if got := b.call("sessions", "rm", notes); got.code != ExitDamaged || readFile(t, notes) != "{}\n" {
		t.Errorf("a file that is no session: %+v", got)
	}

	if got := b.call("sessions", "rm", fileID(root), fileID(root)); got.code != ExitOK || got.out != "" || strings.Count(got.err, "removed ") != 3 {
		t.Errorf("%+v", got)
	}
	if want := []string{fileID(fork) + ".jsonl", fileID(other) + ".jsonl"}; !reflect.DeepEqual(files(), want) {
		t.Errorf("left: %v, want %v", files(), want)
	}
	b.write(t, other, "no session any more")
	if got := b.call("sessions", "rm", fileID(other)); got.code != ExitOK {
		t.Errorf("a damaged one: %+v", got)
	}
}

func TestNothingIsRemovedOfALiveSession(t *testing.T) {
	b := newBox(t)
	root, _, _, _ := b.family(t)
	other := b.create(t, session.Header{}, talk(t, "other", 0))
	b.serve(t, root)
	if got := b.call("sessions", "rm", fileID(other), fileID(root)); got.code != ExitBusy || !strings.Contains(got.err, fmt.Sprint(os.Getpid())) {
		t.Errorf("%+v", got)
	}
	if rows := b.rows(t, "--all"); len(rows) != 5 {
		t.Errorf("%+v", rows)
	}
	if _, err := os.Stat(logstore.DraftsDir(root)); err != nil {
		t.Error(err)
	}
}

func TestALockedSessionIsBusyThoughItsOwnerDoesNotAnswer(t *testing.T) {
	b := newBox(t)
	root, _, _, _ := b.family(t)
	log, err := b.store().Own(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // a test's
	if got := b.call("sessions", "rm", fileID(root)); got.code != ExitBusy || len(b.rows(t, "--all")) != 4 {
		t.Errorf("%+v", got)
	}
}

func TestCompletionOfSessionsAndCalls(t *testing.T) {
	b := newBox(t)
	path := b.create(t, session.Header{}, append(asked(t, "x", "call_1", "call_2"), event(t, session.TypeUserMessage, reply(t, "m", "call_2", "8080"))))
	child := b.create(t, session.Header{Origin: originSubagent, ParentSession: fileID(path)}, talk(t, "x", 0))
	id := fileID(path)
	for _, c := range []struct {
		args         []string
		want, absent string
	}{
		{[]string{"sessions", "rm", ""}, id + "\t", fileID(child)},
		{[]string{"sessions", "rm", id, ""}, "last\t", id},
		{[]string{"sessions", "path", "la"}, "last\t", id},
		{[]string{"sessions", "path", id, ""}, ":4", id},
		{[]string{"sessions", "export", "2"}, id + "\t", "last"},
		{[]string{"sessions", "check", "./x"}, "jsonl", id},
		{[]string{"questions", ""}, id + "\t", fileID(child)},
		{[]string{"questions", "--state", ""}, "continued", "call_1"},
	} {
		got := b.call(append([]string{"__complete"}, c.args...)...)
		if got.code != ExitOK || !strings.Contains(got.out, c.want) || strings.Contains(got.out, c.absent) {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
	a := newApp(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, b.env)
	a.global.cwd = b.cwd
	cmd := &cobra.Command{}
	cmd.SetContext(context.Background())
	for _, c := range []struct {
		args []string
		word string
		want []string
	}{
		{[]string{id}, "", []string{"call_1\tWhich port?"}},
		{[]string{"last"}, "call", []string{"call_1\tWhich port?"}},
		{[]string{id}, "x", nil},
		{[]string{"nosuchid"}, "", nil},
		{[]string{id, "call_1"}, "", nil},
		{nil, "2", []string{id + "\t" + age(1_790_000_000_000, time.Now()) + " " + b.cwd}},
	} {
		if got, _ := completeCalls(a)(cmd, c.args, c.word); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v %q: %q, want %q", c.args, c.word, got, c.want)
		}
	}
}
