package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/mattn/go-runewidth"

	"deepseek/internal/logstore"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

func TestQuestionsOfASessionAsJSON(t *testing.T) {
	b := newBox(t)
	events := asked(t, "x", "call_1", "call_2", "call_3")
	events = append(events, queue(t, session.NextStep, 0, reply(t, "m1", "call_2", "9090")), event(t, session.TypeUserMessage, reply(t, "m2", "call_3", "8080")))
	path := b.create(t, session.Header{}, events)
	before := readFile(t, path)
	got := b.call("questions", fileID(path), "--json")
	want := `{"sessionId":"` + fileID(path) + `","live":false,"active":[` +
		`{"callId":"call_1","state":"continued","queued":false,"questions":[{"id":"port","question":"Which port?","header":"Port","options":[{"label":"8080"},{"label":"9090"}]}],"askedAt":1790000000000},` +
		`{"callId":"call_2","state":"continued","queued":true,"questions":[{"id":"port","question":"Which port?","header":"Port","options":[{"label":"8080"},{"label":"9090"}]}],"askedAt":1790000000000}],` +
		`"settled":[{"callId":"call_3","answers":[{"id":"port","selected":["8080"]}]}]}`
	if got.code != ExitOK || compact(t, got.out) != want || got.err != "" {
		t.Errorf("%+v\nwant %s", got, want)
	}
	if readFile(t, path) != before {
		t.Error("reading changed the file")
	}
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return b.String()
}

func TestQuestionsByState(t *testing.T) {
	b := newBox(t)
	events := append(asked(t, "x", "call_1", "call_2"), event(t, session.TypeUserMessage, reply(t, "m", "call_2", "8080")))
	path := b.create(t, session.Header{}, events)
	for _, c := range []struct{ states, active, settled string }{
		{"open", `"active":[]`, `"settled":[]`},
		{"continued", `"call_1"`, `"settled":[]`},
		{"settled", `"active":[]`, `"call_2"`},
		{"open,continued,settled", `"call_1"`, `"call_2"`},
	} {
		got := b.call("questions", path, "--json", "--state", c.states)
		if out := compact(t, got.out); got.code != ExitOK || !strings.Contains(out, c.active) || !strings.Contains(out, c.settled) {
			t.Errorf("%s: %+v", c.states, got)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"questions", "--state", "contniued"}, "did you mean continued?"},
		{[]string{"questions", "a", "b"}, `does not take "b"`},
		{[]string{"questions", "nosuchsession"}, "no session matches"},
	} {
		if got := b.call(c.args...); got.code != ExitUsage || !strings.Contains(got.err, c.want) || got.out != "" {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}

func TestQuestionsOfAllSessions(t *testing.T) {
	b := newBox(t)
	first := b.create(t, session.Header{}, asked(t, "x", "call_1"))
	b.create(t, session.Header{}, talk(t, "nothing asked", 1))
	b.create(t, session.Header{Origin: originSubagent, ParentSession: fileID(first)}, asked(t, "x", "call_s"))
	settled := b.create(t, session.Header{}, append(asked(t, "x", "call_2"), event(t, session.TypeUserMessage, reply(t, "m", "call_2", "8080"))))
	damaged := b.create(t, session.Header{}, asked(t, "x", "call_3"))
	b.write(t, damaged, strings.Replace(readFile(t, damaged), `{"seq":3`, `{"seq":4`, 1))

	var list []sessionQuestions
	got := b.call("questions", "--json")
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || got.code != ExitOK || len(list) != 2 {
		t.Fatalf("%v %+v", err, got)
	}
	if list[0].SessionID != fileID(settled) || len(list[0].Settled) != 1 || list[1].SessionID != fileID(first) || len(list[1].Active) != 1 {
		t.Errorf("%+v", list)
	}
	if !strings.Contains(got.err, fileID(damaged)) || strings.Count(got.err, "\n") != 1 {
		t.Errorf("the damaged session is not told: %q", got.err)
	}
	got = b.call("questions")
	if got.code != ExitOK || !strings.Contains(got.out, "call_1") || strings.Contains(got.out, "call_2") || strings.Contains(got.out, "call_s") {
		t.Errorf("%+v", got)
	}
	if got := b.call("questions", "--state", "settled"); !strings.Contains(got.out, "call_2  settled") || strings.Contains(got.out, "call_1") {
		t.Errorf("%+v", got)
	}
	if got := b.call("questions", fileID(damaged)); got.code != ExitDamaged || !strings.Contains(got.err, "line 5") {
		t.Errorf("%+v", got)
	}
	empty := newBox(t)
	if got := empty.call("questions", "--json"); got.code != ExitOK || got.out != "[]\n" {
		t.Errorf("%+v", got)
	}
	if got := empty.call("questions"); got.code != ExitOK || got.out != "" || !strings.Contains(got.err, "no question waits") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(empty.home); err == nil {
		t.Error("listing wrote into the home")
	}
}

func TestQuestionsAsText(t *testing.T) {
	b := newBox(t)
	events := append(asked(t, "x", "call_1", "call_2", "call_3"),
		queue(t, session.NextStep, 0, reply(t, "m1", "call_2", "9090")), event(t, session.TypeUserMessage, reply(t, "m2", "call_3", "8080")))
	path := b.create(t, session.Header{}, events)
	elsewhere := filepath.Join(b.cwd, "carried over.jsonl")
	b.write(t, elsewhere, readFile(t, path))
	for _, c := range []struct{ arg, ref string }{{fileID(path), fileID(path)}, {elsewhere, "'" + elsewhere + "'"}} {
		got := b.call("questions", c.arg)
		since := age(1_790_000_000_000, time.Now())
		want := since + "  continued  " + b.cwd + `
  Port: Which port?
    one of: 8080 | 9090
  deepseek answer ` + c.ref + ` call_1

` + since + "  continued, its answer is queued  " + b.cwd + `
  Port: Which port?
    one of: 8080 | 9090
  to take the answer back:
  deepseek answer ` + c.ref + ` call_2 --withdraw

call_3  settled  ` + b.cwd + `
  port: 8080
`
		if got.code != ExitOK || got.out != want {
			t.Errorf("got\n%s\nwant\n%s", got.out, want)
		}
	}
}

func TestQuestionTextThatIsHostileOrLong(t *testing.T) {
	b := newBox(t)
	call := event(t, session.TypeToolCall, session.ToolCall{CallID: "call_x", Name: session.AskTool, Arguments: `{"questions":[{"id":"q","question":"Is \u001b[2J\n` + strings.Repeat("日本語のとても長い質問 and words ", 9) + `?","options":[{"label":"` + strings.Repeat("long label ", 9) + `"},{"label":"no\u001b[1m"}],"multi_select":true}]}`})
	path := b.create(t, session.Header{}, append([]session.Event{timedHeader(t), call}, talk(t, "x", 0)...))
	for _, columns := range []int{40, 80} {
		out := b.terminal(t, columns, "questions", path)
		for l := range strings.Lines(out) {
			l = strings.TrimRight(l, "\r\n")
			if w := runewidth.StringWidth(l); w >= columns && !strings.Contains(l, "deepseek answer") {
				t.Errorf("%d columns in a terminal of %d: %q", w, columns, l)
			}
		}
		if strings.Contains(out, "\x1b") || !strings.Contains(out, "^[[2J") || !strings.Contains(out, "any of: ") || !strings.Contains(out, " call_x") {
			t.Errorf("%q", out)
		}
	}
	if got := b.call("questions", path); !strings.Contains(got.out, "Is \x1b[2J 日本語") {
		t.Errorf("a pipe does not get the bytes: %q", got.out)
	}
}

// terminal calls Main on a terminal of so many columns and returns what it shows.
func (b box) terminal(t *testing.T, columns int, args ...string) string {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	defer master.Close() //nolint:errcheck // a test's
	if err := pty.Setsize(master, &pty.Winsize{Rows: 50, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = all.ReadFrom(master) // ends with an error of the system when the other side is closed
		shown <- all.String()
	}()
	Main(append([]string{"deepseek", "--cwd", b.cwd}, args...), Streams{In: strings.NewReader(""), Out: slave, Err: slave}, b.env)
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	return <-shown
}

// fakeHost is a session that waits for an approval.
type fakeHost struct {
	remote.Host
	header session.Header
}

func (h fakeHost) Header() session.Header { return h.header }

func (h fakeHost) Watch(func(question.Event)) func() { return func() {} }

func (h fakeHost) Questions(context.Context) (remote.QuestionList, error) {
	return remote.QuestionList{Waits: []remote.Wait{
		{CallID: "call_a", Kind: question.KindApproval, Questions: []session.Question{{ID: "approval", Question: "Run make?", Options: []session.Option{{Label: "no"}}}}},
	}}, nil
}

// serve makes the session at path a live one, until the test ends.
func (b box) serve(t *testing.T, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dsq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := remote.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	h, err := logstore.ReadHeader(path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- l.Serve(context.Background(), fakeHost{header: h}, remote.Options{}) }()
	log, err := b.store().Own(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Announce(logstore.Owner{PID: os.Getpid(), Socket: l.Path(), StartedAt: 1, Session: h.ID}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestALiveSessionTellsItsOtherCards(t *testing.T) {
	b := newBox(t)
	path := b.create(t, session.Header{}, append([]session.Event{timedHeader(t)}, askCall(t, "call_1")))
	b.create(t, session.Header{}, asked(t, "of another", "call_2"))
	if got := b.call("questions", path, "--json"); !strings.Contains(compact(t, got.out), `"live":false,"active":[{"callId":"call_1","state":"continued"`) || strings.Contains(got.out, "waits") {
		t.Errorf("a dead session: %+v", got)
	}
	b.serve(t, path)
	got := b.call("questions", path, "--json")
	out := compact(t, got.out)
	if got.code != ExitOK || !strings.Contains(out, `"live":true,"active":[{"callId":"call_1","state":"open"`) ||
		!strings.Contains(out, `"waits":[{"callId":"call_a","kind":"approval","questions":[{"id":"approval"`) {
		t.Errorf("%+v", got)
	}
	got = b.call("questions", "--state", "open")
	want := fmt.Sprintf("now  approval, the run waits  %s\n  Run make?\n    one of: no\n", b.cwd)
	if !strings.HasPrefix(got.out, want) || !strings.Contains(got.out, "\n  deepseek attach "+fileID(path)+"\n\n") || strings.Contains(got.out, "call_2") || !strings.Contains(got.out, "call_1") {
		t.Errorf("%+v", got)
	}
	if got := b.call("questions", "--state", "settled"); strings.Contains(got.out, "approval") {
		t.Errorf("%+v", got)
	}
}

func TestAge(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	for _, c := range []struct {
		before time.Duration
		want   string
	}{
		{-time.Hour, "0s"}, {0, "0s"}, {59 * time.Second, "59s"}, {time.Minute, "1m"}, {119 * time.Minute, "1h"}, {24 * time.Hour, "1d"}, {1000 * time.Hour, "41d"},
	} {
		if got := age(now.Add(-c.before).UnixMilli(), now); got != c.want {
			t.Errorf("%v: %s", c.before, got)
		}
	}
	if got := age(0, now); got != "?" {
		t.Error(got)
	}
}

// A carried log may name anything as its folder and as its calls.
func TestAHostileLogCannotReachTheTerminal(t *testing.T) {
	b := newBox(t)
	call := event(t, session.TypeToolCall, session.ToolCall{CallID: "call\x1b[2Jx", Name: session.AskTool, Arguments: portQuestion})
	path := b.create(t, session.Header{Cwd: "/a\x1b[2J\n/b"}, append(append([]session.Event{timedHeader(t), call}, talk(t, "x\x1b[2J", 0)...), event(t, session.TypeUserMessage, reply(t, "m", "call\x1b[2Jx", "a\x1b[2J"))))
	unsettled := b.create(t, session.Header{Cwd: "/a\x1b[2J\n/b"}, append([]session.Event{timedHeader(t), call}, talk(t, "x", 0)...))
	for _, args := range [][]string{{"questions"}, {"questions", path}, {"questions", unsettled}, {"sessions"}} {
		if out := b.terminal(t, 100, args...); strings.Contains(out, "\x1b") || !strings.Contains(out, "^[[2J") {
			t.Errorf("%v: %q", args, out)
		}
	}
}
