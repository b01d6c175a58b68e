package view

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"deepseek/internal/session"
)

func TestAnOpenTurnOfADeadRunIsInterrupted(t *testing.T) {
	l := newLogged(t).task("x").says("", "I begin.", readCall, testCall).starts(readCall)
	dead, live := l.build(false, nil), l.build(true, nil)
	if r := dead.Turns[0].Reason; r == nil || r.Kind != session.EndInterrupted {
		t.Errorf("dead: %+v", r)
	}
	if live.Turns[0].Reason != nil || !strings.Contains(text(t, live, TextOptions{}), "turn 1 · running · 1 step") {
		t.Errorf("live: %+v", live.Turns[0].Reason)
	}
	if calls := live.Running(); len(calls) != 1 || calls[0].Call != readCall || calls[0].Began.IsZero() || dead.Running() != nil {
		t.Errorf("running: %+v", calls)
	}
	tools := only(t, dead, KindTool)
	if tools[0].Code != session.CodeOutcomeUnknown || tools[1].Code != session.CodeNotStarted {
		t.Errorf("%+v", tools)
	}
	got := text(t, live, TextOptions{Expand: true})
	if !strings.Contains(got, "read cmd/server/main.go · running") || !strings.Contains(got, "· not started yet") {
		t.Error(got)
	}
}

// TestReadingOnWhileARunIsLive reads twice from one builder.
func TestReadingOnWhileARunIsLive(t *testing.T) {
	l := everything(t)
	b := NewBuilder(nil)
	h := session.Header{ID: "s"}
	for n, e := range l.events {
		if err := b.Apply(e); err != nil {
			t.Fatal(err)
		}
		if _, err := b.End(h, true); err != nil {
			t.Fatalf("after event %d: %v", n, err)
		}
	}
	tr, err := b.End(h, true)
	if err != nil {
		t.Fatal(err)
	}
	tr.Live, tr.SessionID, tr.Header = false, "", session.Header{}
	want := l.build(true, nil)
	want.Live, want.SessionID, want.Header = false, "", session.Header{}
	var got, whole bytes.Buffer
	if err := errors.Join(WriteJSON(&got, tr), WriteJSON(&whole, want)); err != nil {
		t.Fatal(err)
	}
	if got.String() != whole.String() {
		t.Errorf("%s\nwant\n%s", got.String(), whole.String())
	}
}

func TestJSONIsTheWholeTranscript(t *testing.T) {
	tr := everything(t).build(false, nil)
	var got bytes.Buffer
	if err := WriteJSON(&got, tr); err != nil {
		t.Fatal(err)
	}
	want, err := session.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSuffix(got.String(), "\n") != string(want) {
		t.Error("written a turn at a time it is another object")
	}
	var empty bytes.Buffer
	if err := WriteJSON(&empty, (&logged{t: t}).build(false, nil)); err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(empty.Bytes(), &keys); err != nil || len(keys) != 4 || string(keys["turns"]) != "[]" ||
		string(keys["questions"]) != `{"active":[],"settled":[]}` {
		t.Errorf("%v %s", err, empty.Bytes())
	}
}

func TestWhatIsUnknownOrBrokenIsRefused(t *testing.T) {
	for _, c := range []struct {
		e    session.Event
		want error
	}{
		{session.Event{Type: "new/thing", Data: json.RawMessage(`{}`)}, session.ErrTooNew},
		{session.Event{Type: session.TypeToolResult, Data: json.RawMessage(`{"message":7}`)}, session.ErrDamaged},
		{session.Event{Type: session.TypeTurnEnd, Data: json.RawMessage(`{"turn":"x"}`)}, session.ErrDamaged},
		{session.Event{Type: session.TypeSubagent, Data: json.RawMessage(`[]`)}, session.ErrDamaged},
		{session.Event{Type: "new/thing", Data: json.RawMessage(`{}`), Ignorable: true}, nil},
	} {
		if err := NewBuilder(nil).Apply(c.e); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.e.Type, err)
		}
	}
}

// lines are whole lines; folding may leave some out and adds none.
func TestFoldedIsAPartOfExpanded(t *testing.T) {
	for _, width := range []int{0, 20, 40, 80, 200} {
		folded := text(t, everything(t).build(false, TextBound(false)), TextOptions{Terminal: width > 0, Width: width})
		expanded := text(t, everything(t).build(false, TextBound(true)), TextOptions{Expand: true, Terminal: width > 0, Width: width})
		rest := strings.Split(expanded, "\n")
		for _, line := range strings.Split(folded, "\n") {
			for len(rest) > 0 && rest[0] != line {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				t.Fatalf("width %d: the line %q of the folded one is not in its place in\n%s", width, line, expanded)
			}
			rest = rest[1:]
		}
	}
}

// TestLinesFitTheWidth: but for the session's id, which is to be copied.
func TestLinesFitTheWidth(t *testing.T) {
	for _, width := range []int{20, 40, 80, 200} {
		for line := range strings.SplitSeq(text(t, everything(t).build(false, TextBound(true)), TextOptions{Expand: true, Terminal: true, Width: width}), "\n") {
			if w := runewidth.StringWidth(line); w > width && !strings.HasPrefix(line, "session ") {
				t.Errorf("%d columns at width %d: %q", w, width, line)
			}
		}
	}
}

const hostile = "\x1b]0;owned\a\x1b[2J\r\u202eevil\u2066\u009b31m\xff</pre></details><script>alert(1)</script>{{.}}<img src=x onerror=alert(1)>"

// hostileLog has the text wherever a model or a stranger may put it.
func hostileLog(t *testing.T) *logged {
	t.Helper()
	args, err := json.Marshal(map[string]any{"questions": []any{map[string]any{
		"id": hostile, "header": hostile, "question": hostile, "options": []any{map[string]any{"label": hostile, "description": hostile}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	ask := session.Call{ID: hostile, Name: session.AskTool, Arguments: string(args)}
	run := session.Call{ID: "run", Name: hostile, Arguments: `{"command":` + string(mustJSON(t, hostile)) + `}`}
	l := newLogged(t).task(hostile).says(hostile, hostile, ask, run).
		does(ask, "", pending(t, hostile), nil).
		add(session.TypeApprovalAsked, session.ApprovalAsked{CallID: run.ID, Title: hostile}).
		add(session.TypeApprovalDecided, session.ApprovalDecided{CallID: run.ID, Decision: session.DecisionDenied, Message: hostile}).
		add(session.TypeSubagent, map[string]any{"id": hostile, hostile: hostile}).
		add(session.TypeGoalChange, session.GoalChange{Goal: &session.Goal{Objective: hostile, Phase: hostile}}).
		add(session.TypeTitle, map[string]any{"title": hostile}).
		does(run, hostile, hostile, &session.ToolMeta{Diff: hostile, Signal: hostile}).
		ends(session.Reason{Kind: session.EndError, Error: &session.ErrorInfo{Code: hostile, Message: hostile}})
	m := reply(t, "late", hostile, hostile)
	return l.queue(session.NextStep, m).begin(session.NextStep, m).says("", hostile).completes().
		queue(session.NextTurn, message("q", hostile, hostile))
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestHostileTextOnATerminal(t *testing.T) {
	for _, expand := range []bool{false, true} {
		got := text(t, hostileLog(t).build(false, TextBound(expand)), TextOptions{Expand: expand, Terminal: true, Width: 60})
		if Visible(got) != got {
			t.Errorf("a control sequence gets through:\n%q", got)
		}
	}
	if got := text(t, hostileLog(t).build(false, TextBound(false)), TextOptions{}); !strings.Contains(got, "\x1b]0;owned\a\x1b[2J\r\u202eevil") {
		t.Error("in a pipe the bytes are not exact")
	}
}

func TestHostileTextInHTML(t *testing.T) {
	var b bytes.Buffer
	tr := hostileLog(t).build(false, HTMLBound)
	tr.Header.Cwd, tr.Header.ParentSession, tr.SessionID = hostile, hostile, hostile
	if err := WriteHTML(&b, tr, HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if Visible(got) != got {
		t.Error("a control character gets through")
	}
	for _, bad := range []string{"<script", "<img", "<link", " href=\"h", "@import", "url("} {
		if strings.Contains(got, bad) {
			t.Errorf("%s in\n%s", bad, got)
		}
	}
	balanced(t, got)
}

// balanced checks that every element that needs it is closed, in order.
func balanced(t *testing.T, page string) {
	t.Helper()
	var open []string
	for {
		_, rest, found := strings.Cut(page, "<")
		if !found {
			break
		}
		tag, after, _ := strings.Cut(rest, ">")
		page = after
		name := strings.ToLower(strings.Fields(strings.TrimPrefix(tag, "/") + " ")[0])
		switch {
		case name == "!doctype", name == "meta", name == "br":
		case strings.HasPrefix(tag, "/"):
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		default:
			open = append(open, name)
		}
	}
	if len(open) > 0 {
		t.Errorf("not closed: %v", open)
	}
}

func TestBigResultsAreBounded(t *testing.T) {
	big := strings.Repeat("a line of output\n", 60_000) // 1 MB
	l := newLogged(t).task("x").says("", "", testCall).does(testCall, "", big, nil).completes()
	var b bytes.Buffer
	if err := WriteHTML(&b, l.build(false, HTMLBound), HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 100<<10 || !strings.Contains(b.String(), "left out") {
		t.Errorf("the page has %d bytes", b.Len())
	}
	if got := text(t, l.build(false, TextBound(true)), TextOptions{Expand: true}); len(got) > 6<<10 || !strings.Contains(got, "left out …]") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
	b.Reset()
	if err := WriteJSON(&b, l.build(false, nil)); err != nil || b.Len() < len(big) {
		t.Errorf("JSON leaves something out: %d bytes, %v", b.Len(), err)
	}
}

func TestExcerpt(t *testing.T) {
	for _, c := range []struct {
		s           string
		lines, size int
		want        string
	}{
		{"", 3, 10, ""},
		{"a\nb\nc", 3, 10, "a\nb\nc"},
		{"1\n2\n3\n4\n5\n6", 3, 100, "1\n2\n[… 3 lines, 6 bytes left out …]\n6"},
		{"1\n2\n3\n4\n5\n6\n", 3, 100, "1\n2\n[… 3 lines, 6 bytes left out …]\n6\n"},
		{strings.Repeat("é", 20), 3, 13, "éééé\n[… 28 bytes left out …]\néé"},
	} {
		if got := Excerpt(c.s, c.lines, c.size); got != c.want {
			t.Errorf("%q: %q, want %q", c.s, got, c.want)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a\nb\nc\nd\ne", 3, 5)
	f.Add("漢字\n\n\n\xff\xfe", 2, 4)
	f.Fuzz(func(t *testing.T, s string, lines, size int) {
		lines, size = 1+abs(lines)%50, 1+abs(size)%500
		got := Excerpt(s, lines, size)
		if got != s && (len(got) > size+60 || strings.Count(got, "\n") > lines+2) {
			t.Errorf("%d bytes, %d lines of %d, %d: %q", len(got), strings.Count(got, "\n"), size, lines, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("a character is cut: %q", got)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

func TestWrapLine(t *testing.T) {
	for _, c := range []struct {
		line    string
		columns int
		want    string
	}{
		{"", 5, ""},
		{"short", 5, "short"},
		{"two words", 5, "two|words"},
		{"two words", 8, "two|words"},
		{"    indented code here", 12, "    indented|code here"},
		{"averylongword", 5, "avery|longw|ord"},
		{"漢字漢字", 5, "漢字|漢字"},
		{"漢字", 1, "漢|字"},
		{"a  b", 2, "a|b"},
		{"👩‍👩‍👧 family", 4, "👩‍👩‍👧|fami|ly"},
	} {
		if got := strings.Join(wrapLine(c.line, c.columns), "|"); got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.line, c.columns, got, c.want)
		}
	}
}

func FuzzWrapLine(f *testing.F) {
	f.Add("some words and averyveryverylongone", 7)
	f.Add("漢字 👩‍👩‍👧 e\u0301\u0301", 3)
	f.Fuzz(func(t *testing.T, line string, columns int) {
		if strings.Contains(line, "\n") || !utf8.ValidString(line) {
			t.Skip()
		}
		got := wrapLine(line, 1+abs(columns)%100)
		if strings.ReplaceAll(strings.Join(got, ""), " ", "") != strings.ReplaceAll(line, " ", "") {
			t.Errorf("%q became %q", line, got)
		}
	})
}

// TestAnyOrderOfEventsIsSurvived builds from logs that no engine writes.
func TestAnyOrderOfEventsIsSurvived(t *testing.T) {
	all := slices.Concat(everything(t).events, hostileLog(t).events)
	r := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		b := NewBuilder(TextBound(true))
		for range 60 {
			if err := b.Apply(all[r.IntN(len(all))]); err != nil && !errors.Is(err, session.ErrDamaged) {
				t.Fatal(err)
			}
		}
		tr, err := b.End(session.Header{ID: "s"}, r.IntN(2) == 0)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := errors.Join(WriteJSON(&out, tr), WriteText(&out, tr, TextOptions{Expand: true, Width: 40}), WriteHTML(&out, tr, HTMLOptions{})); err != nil {
			t.Fatal(err)
		}
	}
}
