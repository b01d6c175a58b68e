package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"deepseek/internal/logstore"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

const (
	shownID   = "20261130-171203-7f3kq"
	shownCall = "call_00_q"
	shownArgs = `{"questions":[{"id":"port","question":"Which port?","options":[{"label":"8080"},{"label":"9090"}]}]}`
)

// shownEvents is a session in which a question was answered late. Whether the
// answer was admitted is the caller's choice.
func shownEvents(t *testing.T, admitted bool) []session.Event {
	t.Helper()
	var events []session.Event
	add := func(typ string, data any) {
		e, err := session.NewEvent(typ, 1_790_000_000_000+int64(len(events)), data)
		if err != nil {
			t.Fatal(err)
		}
		e.Seq = int64(len(events))
		events = append(events, e)
	}
	task := session.NewUserMessage("m1", "the task text", session.Source{Kind: session.SourceUser})
	text, err := session.ReplyText(shownCall, nil, []session.Answer{{ID: "port", Selected: []string{"9090"}}})
	if err != nil {
		t.Fatal(err)
	}
	reply := session.NewUserMessage("m2", text, session.Source{Kind: session.SourceQuestionReply, CallID: shownCall, Outcome: "answered"})
	says := func(text string, blocks ...session.Block) {
		if text != "" {
			blocks = append([]session.Block{{Type: session.BlockText, Text: text}}, blocks...)
		}
		add(session.TypeAssistantMessage, session.AssistantMessage{Message: session.ModelMessage{ID: "a", Role: "assistant", Content: blocks}})
	}
	claim := func(list string) {
		add(session.TypeInboxSpliced, session.InboxSpliced{Target: list, RemovedCount: 1, Inserted: []session.UserMessage{}})
	}
	end := func(turn int) {
		add(session.TypeTurnEnd, session.TurnEnd{Turn: turn, Reason: session.Reason{Kind: session.EndCompleted}})
	}
	pending, err := session.PendingText(shownCall, "no answer yet")
	if err != nil {
		t.Fatal(err)
	}
	add(session.TypeRequestHeader, session.RequestHeader{Header: session.HeaderBody{
		Config: session.RequestConfig{Provider: "script", Model: "script:x"},
		Tools:  []session.ToolSpec{{Name: session.AskTool, Parameters: json.RawMessage(`{"properties":{"timeout":{}}}`)}},
	}})
	add(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextTurn, Inserted: []session.UserMessage{task}})
	add(session.TypeTurnStart, session.TurnStart{Turn: 1})
	claim(session.NextTurn)
	add(session.TypeStepStart, session.StepMark{Turn: 1, Step: 1})
	add(session.TypeUserMessage, task)
	says("", session.Block{Type: session.BlockToolCall, ID: shownCall, Name: session.AskTool, Arguments: shownArgs})
	add(session.TypeToolCall, session.ToolCall{Turn: 1, Step: 1, CallID: shownCall, Name: session.AskTool, Arguments: shownArgs})
	add(session.TypeToolResult, session.ToolResult{Turn: 1, Step: 1, Message: session.ToolMessage{ID: "r", Role: "tool", ToolCallID: shownCall, Content: pending}})
	says("done\x1b[2J")
	end(1)
	add(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextStep, Inserted: []session.UserMessage{reply}})
	if admitted {
		add(session.TypeTurnStart, session.TurnStart{Turn: 2})
		claim(session.NextStep)
		add(session.TypeStepStart, session.StepMark{Turn: 2, Step: 1})
		add(session.TypeUserMessage, reply)
		says("after")
		end(2)
	}
	return events
}

// shown makes the session in the box, and returns its file.
func shown(t *testing.T, b box, admitted bool) string {
	t.Helper()
	log, err := logstore.New(b.home).Create(session.Header{ID: shownID, CreatedAt: 1_790_000_000_000, Cwd: b.cwd}, shownEvents(t, admitted))
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Path()
}

func TestShowInEveryForm(t *testing.T) {
	b := newBox(t)
	path := shown(t, b, true)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folded, expanded := b.call("show", "last"), b.call("show", shownID, "--expand")
	for _, got := range []call{folded, expanded} {
		if got.code != ExitOK || got.err != "" {
			t.Errorf("%+v", got)
		}
		for _, want := range []string{"the task text", "Which port?", "(x) 9090", "answered late", "done\x1b[2J\n", "after\n"} {
			if !strings.Contains(got.out, want) {
				t.Errorf("no %q in\n%s", want, got.out)
			}
		}
		if strings.Contains(got.out, "answer_to_pending_question") {
			t.Error("a reply shows as JSON")
		}
	}
	if len(folded.out) > len(expanded.out) {
		t.Error("folded is longer than expanded")
	}
	var tr struct {
		SessionID string
		Header    session.Header
		Turns     []struct {
			Turn, Steps int
			Reason      session.Reason
			Items       []map[string]any
		}
		Questions struct{ Active, Settled []map[string]any }
	}
	got := b.call("show", path, "--json")
	if err := json.Unmarshal([]byte(got.out), &tr); err != nil || got.code != ExitOK {
		t.Fatalf("%v: %+v", err, got)
	}
	if tr.SessionID != shownID || tr.Header.Cwd != b.cwd || len(tr.Turns) != 2 || tr.Turns[0].Steps != 1 ||
		tr.Turns[1].Reason.Kind != session.EndCompleted || len(tr.Questions.Settled) != 1 {
		t.Errorf("%+v", tr)
	}
	if page := b.call("show", shownID, "--html", "-"); page.code != ExitOK || !strings.HasPrefix(page.out, "<!doctype html>") || strings.Contains(page.out, "<script") {
		t.Errorf("%+v", page)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed: %v", err)
	}
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != 1 {
		t.Errorf("beside the file: %v %v", names, err)
	}
}

func TestShowAQueuedAnswer(t *testing.T) {
	b := newBox(t)
	shown(t, b, false)
	got := b.call("show", "7f3kq")
	if !strings.Contains(got.out, "pending, an answer is queued, not yet delivered") || !strings.Contains(got.out, "(x) 9090") || strings.Contains(got.out, "answer with") {
		t.Error(got.out)
	}
}

func TestShowWritesThePageWhole(t *testing.T) {
	b := newBox(t)
	shown(t, b, true)
	page := filepath.Join(b.cwd, "out.html")
	b.write(t, page, "old")
	if err := os.Chmod(page, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(b.cwd, "link.html")
	if err := os.Symlink("out.html", link); err != nil {
		t.Fatal(err)
	}
	if got := b.call("show", shownID, "--html", "link.html"); got.code != ExitOK || got.out != "" {
		t.Fatalf("%+v", got)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "Which port?") {
		t.Errorf("%v %s", err, text)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if info, err := os.Stat(page); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is not kept: %v", err)
	}
	if got := b.call("show", shownID, "--html", "new.html"); got.code != ExitOK {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(filepath.Join(b.cwd, "new.html")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("a new page can be read by others: %v", err)
	}
	for file, exit := range map[string]int{".": ExitUsage, "missing/out.html": ExitFailed, "": ExitUsage} {
		if got := b.call("show", shownID, "--html", file); got.code != exit || strings.Count(got.err, "\n") > 3 {
			t.Errorf("%q: %+v", file, got)
		}
	}
	names, err := os.ReadDir(b.cwd)
	if err != nil || len(names) != 3 {
		t.Errorf("left behind: %v %v", names, err)
	}
}

func TestShowRefuses(t *testing.T) {
	b := newBox(t)
	shown(t, b, true)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"show"}, "needs SESSION"},
		{[]string{"show", "nothing-like-it"}, "no session matches"},
		{[]string{"show", shownID, "--json", "--html", "x"}, "two formats"},
		{[]string{"show", shownID, "--json", "--follow"}, "--follow shows text only"},
	} {
		if got := b.call(c.args...); got.code != ExitUsage || got.out != "" || !strings.Contains(got.err, c.want) {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
}

func TestShowOfFilesThatAreNotWhole(t *testing.T) {
	b := newBox(t)
	whole, err := os.ReadFile(shown(t, b, true))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	offset := func(line int) int { return len(strings.Join(lines[:line-1], "")) }
	for name, c := range map[string]struct {
		text string
		exit int
		want string
	}{
		"torn":           {string(whole[:len(whole)-20]), ExitOK, ""},
		"bad line":       {strings.Replace(string(whole), lines[5], "{\"seq\":4,oops}\n", 1), ExitDamaged, fmt.Sprintf("line 6, byte %d", offset(6))},
		"bad payload":    {strings.Replace(string(whole), `"data":{"turn":1}`, `"data":{"turn":"one"}`, 1), ExitDamaged, fmt.Sprintf("line 4, byte %d", offset(4))},
		"unknown event":  {strings.Replace(string(whole), "turn/start", "turn/begin", 1), ExitDamaged, "turn/begin"},
		"newer":          {strings.Replace(string(whole), `"version":1`, `"version":9`, 1), ExitDamaged, "newer"},
		"nothing at all": {"", ExitDamaged, "line 1"},
	} {
		path := filepath.Join(b.cwd, "x.jsonl")
		b.write(t, path, c.text)
		for _, form := range [][]string{nil, {"--json"}, {"--html", "-"}} {
			got := b.call(append([]string{"show", "x.jsonl"}, form...)...)
			if got.code != c.exit || !strings.Contains(got.err, c.want) || c.exit != ExitOK && got.out != "" {
				t.Errorf("%s %v: %+v", name, form, got)
			}
		}
	}
}

func TestShowOnATerminalGoesThroughThePager(t *testing.T) {
	b := newBox(t)
	shown(t, b, true)
	for name, c := range map[string]struct {
		env  []string
		want string
		exit int
	}{
		"pager":     {[]string{"TERM=xterm", "NO_COLOR=1", "PAGER=sed 's/^/paged: /'"}, "paged: > the task text", ExitOK},
		"quits":     {[]string{"TERM=xterm", "PAGER=true"}, "", ExitOK},
		"LESS":      {[]string{"TERM=xterm", "PAGER=echo LESS=$LESS; cat >/dev/null"}, "LESS=FRX", ExitOK},
		"own LESS":  {[]string{"TERM=xterm", "LESS=M", "PAGER=echo LESS=$LESS; cat >/dev/null"}, "LESS=M", ExitOK},
		"none":      {[]string{"TERM=xterm", "PAGER="}, "done^[[2J", ExitOK},
		"dumb":      {[]string{"TERM=dumb", "PAGER=echo no"}, "> the task text", ExitOK},
		"not there": {[]string{"TERM=xterm", "PAGER=/nonexistent/pager"}, "", ExitFailed},
		"fails":     {[]string{"TERM=xterm", "PAGER=false"}, "", ExitFailed},
		"own code":  {[]string{"TERM=xterm", "PAGER=cat; exit 3"}, "> the task text", ExitFailed},
		"not sh":    {[]string{"TERM=xterm", "PAGER='unclosed"}, "", ExitFailed},
		"killed":    {[]string{"TERM=xterm", "PAGER=kill -9 $$"}, "", ExitFailed},
		"Ctrl+C":    {[]string{"TERM=xterm", "PAGER=kill -INT $$"}, "", ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave, err := pty.Open()
			if err != nil {
				t.Skipf("no pseudo terminals here: %v", err)
			}
			read := make(chan string, 1)
			go func() {
				out, _ := io.ReadAll(master) // ends with an error when the other side is closed
				read <- string(out)
			}()
			var errs bytes.Buffer
			code := Main([]string{"deepseek", "--cwd", b.cwd, "show", shownID}, Streams{In: strings.NewReader(""), Out: slave, Err: &errs}, append(b.env, c.env...))
			if err := slave.Close(); err != nil {
				t.Error(err)
			}
			out := <-read
			if err := master.Close(); err != nil {
				t.Error(err)
			}
			if code != c.exit || !strings.Contains(out, c.want) {
				t.Errorf("exit %d, %q, stderr %q", code, out, errs.String())
			}
			if pagerTold := strings.Contains(errs.String(), "OUTPUT_WRITE: the pager \"") && strings.Contains(errs.String(), "\nset PAGER"); pagerTold != (c.exit == ExitFailed) {
				t.Errorf("stderr %q", errs.String())
			}
			if strings.Contains(out, "\x1b[2J") {
				t.Error("a control sequence of the model reaches the terminal")
			}
		})
	}
}

func TestAPageIsNotWrittenOverWhatWouldBeLost(t *testing.T) {
	b := newBox(t)
	shown(t, b, true)
	log := strings.TrimSpace(b.call("sessions", "path", shownID).out)
	text := readFile(t, log)
	carried := filepath.Join(b.cwd, "carried.txt") // a session is one by what is in it
	newer := filepath.Join(b.cwd, "newer")
	damaged := filepath.Join(b.cwd, "damaged.jsonl")
	for path, what := range map[string]string{carried: text, newer: strings.Replace(text, `"version":1`, `"version":99`, 1), damaged: "{"} {
		if err := os.WriteFile(path, []byte(what), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": log, "folder": filepath.Dir(log), "ahead": filepath.Join(filepath.Dir(log), "new.jsonl")} {
		if err := os.Symlink(to, filepath.Join(b.cwd, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(log, filepath.Join(b.cwd, "same")); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(b.home, "config.yaml")
	for _, to := range []string{log, carried, newer, damaged, "link", "same", "folder/new.html", "ahead", log + ".owner", config} {
		got := b.call("show", shownID, "--html", to)
		if got.code != ExitUsage || !strings.Contains(got.err, "would be lost\nname another file") {
			t.Errorf("%s: %+v", to, got)
		}
	}
	if readFile(t, log) != text || readFile(t, carried) != text {
		t.Error("a session was changed")
	}
	if _, err := os.Lstat(config); err == nil {
		t.Error("the configuration was written")
	}
	if got := b.call("sessions", "export", shownID, "-o", filepath.Join(b.home, "sessions")); got.code != ExitUsage {
		t.Errorf("%+v", got)
	}
	a := newApp(Streams{Out: io.Discard, Err: &bytes.Buffer{}}, append(b.env, "GITHUB_STEP_SUMMARY="+log))
	a.jobSummary(waitingResult("Which?", false))
	if readFile(t, log) != text {
		t.Error("a summary was added to a session")
	}
}

func TestAPageIsWrittenThroughALink(t *testing.T) {
	b := newBox(t)
	shown(t, b, true)
	for name, to := range map[string]string{"old": "old.html", "new": "sub/new.html", "far": "new"} {
		if err := os.Symlink(to, filepath.Join(b.cwd, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(b.cwd, "sub"), 0o700), os.WriteFile(filepath.Join(b.cwd, "old.html"), nil, 0o640)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{"old", "old.html"}, {"new", "sub/new.html"}, {"far", "sub/new.html"}} {
		if got := b.call("show", shownID, "--html", c[0]); got.code != ExitOK {
			t.Errorf("%+v", got)
		}
		info, err := os.Lstat(filepath.Join(b.cwd, c[0]))
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link %s is gone: %v", c[0], err)
		}
		if !strings.Contains(readFile(t, filepath.Join(b.cwd, c[1])), "</html>") {
			t.Errorf("%s is not written", c[1])
		}
	}
}

func TestFollowWithoutARunShowsWhatThereIs(t *testing.T) {
	b := newBox(t)
	shown(t, b, true)
	if got := b.call("show", shownID, "--follow"); got.code != ExitOK || !strings.Contains(got.out, "after\n") || !strings.Contains(got.err, "no run is at work") {
		t.Errorf("%+v", got)
	}
}

// TestFollowedEvents shows what a person who follows in a pipe gets to read.
func TestFollowedEvents(t *testing.T) {
	var out bytes.Buffer
	a := newApp(Streams{Out: &out, Err: &bytes.Buffer{}}, []string{"HOME=/home/ada"})
	b := newBox(t)
	a.global.cwd, a.global.home = b.cwd, b.home
	cfg, err := a.Load(nil, false)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{reading: &reading{a: a, cfg: cfg, target: target{ref: shownID}}, screen: view.NewScreen(a.Out, view.ScreenOptions{})}
	for _, e := range shownEvents(t, true) {
		f.notice(remote.Notice{Seq: e.Seq, Event: bytes.TrimSuffix(e.AppendLine(nil), []byte("\n"))})
		if e.Type == session.TypeToolCall {
			f.notice(remote.Notice{Request: &remote.RequestNote{CallID: shownCall, Kind: "question", Questions: []session.Question{{ID: "port", Question: "Which port?"}}}})
		}
	}
	f.screen.Close()
	rest := out.String()
	for _, want := range []string{"\nturn 1\n", "> the task text", "? call_00_q: Which port?", "answer with: deepseek answer " + shownID + " call_00_q", "done\x1b[2J", "\nturn 2\n", "after\n"} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is not in its place in\n%s", want, out.String())
		}
		rest = after
	}
	if f.next != int64(len(shownEvents(t, true))) {
		t.Errorf("next is %d", f.next)
	}
}
