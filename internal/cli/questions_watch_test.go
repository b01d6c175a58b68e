package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"deepseek/internal/session"
)

// watching is a --watch that looks when the test says so.
func (b box) watching(o questionsOptions, terminal bool) (*questionWatch, *bytes.Buffer) {
	var out, errs bytes.Buffer
	a := newApp(Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, append(b.env, "TERM=xterm", "COLUMNS=60"))
	a.terminals.out = terminal
	r := &questionReader{a: a, o: o, home: b.home, cwd: b.cwd, store: a.store(b.home)}
	return &questionWatch{questionReader: r, now: time.Now}, &out
}

func look(t *testing.T, w *questionWatch, out *bytes.Buffer) string {
	t.Helper()
	out.Reset()
	if err := w.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWatchShowsOnlyWhatChanges(t *testing.T) {
	b := newBox(t)
	w, out := b.watching(questionsOptions{}, false)
	if got := look(t, w, out); got != "no question waits for an answer\n" {
		t.Errorf("at first: %q", got)
	}
	if got := look(t, w, out); got != "" {
		t.Errorf("nothing changed: %q", got)
	}
	path := b.create(t, session.Header{}, asked(t, "x", "call_1", "call_2"))
	if got := look(t, w, out); !strings.Contains(got, "call_1") || !strings.Contains(got, "call_2") {
		t.Errorf("two came: %q", got)
	}
	if got := look(t, w, out); got != "" {
		t.Errorf("nothing changed: %q", got)
	}
	answered := b.create(t, session.Header{}, append(asked(t, "x", "call_1", "call_2"), event(t, session.TypeUserMessage, reply(t, "m", "call_1", "8080"))))
	if err := os.Rename(answered, path); err != nil {
		t.Fatal(err)
	}
	if got := look(t, w, out); strings.Contains(got, "call_1") || !strings.Contains(got, "call_2") {
		t.Errorf("one was answered: %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := look(t, w, out); !strings.Contains(got, "no question waits") {
		t.Errorf("the session is gone: %q", got)
	}
}

func TestWatchRingsForAQuestionThatComes(t *testing.T) {
	b := newBox(t)
	b.create(t, session.Header{}, asked(t, "x", "call_1"))
	w, out := b.watching(questionsOptions{bell: true}, true)
	if got := look(t, w, out); strings.Contains(got, "\a") || !strings.Contains(got, toTop) || !strings.Contains(got, "call_1") {
		t.Errorf("what waited before: %q", got)
	}
	b.create(t, session.Header{}, asked(t, "x", "call_2"))
	if got := look(t, w, out); strings.Count(got, "\a") != 1 || !strings.HasPrefix(got, toTop) || !strings.HasSuffix(got, eraseRest+"\a") {
		t.Errorf("one more: %q", got)
	}
	if got := look(t, w, out); strings.Contains(got, "\a") {
		t.Errorf("it rings again: %q", got)
	}
}

func TestWatchEndsWithItsContextOrItsReader(t *testing.T) {
	b := newBox(t)
	w, _ := b.watching(questionsOptions{}, false)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := w.until(ctx, nil); !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w, _ = b.watching(questionsOptions{}, false)
	w.a.Out.gone = true
	if err := w.until(t.Context(), nil); err != nil {
		t.Error(err)
	}
	w, _ = b.watching(questionsOptions{session: "nosuchsession"}, false)
	if err := w.until(t.Context(), nil); failure(err).Exit != ExitUsage {
		t.Error(err)
	}
}

func TestAListHigherThanTheScreenIsCut(t *testing.T) {
	wide := strings.Repeat("w", 25)
	for _, c := range []struct {
		lines []string
		rows  int
		want  []string
	}{
		{[]string{"a", "b"}, 2, []string{"a", "b"}},
		{[]string{"a", "b", "c"}, 2, []string{"a", "more: deepseek questions"}},
		{[]string{"a", wide}, 4, []string{"a", wide}},
		{[]string{"a", wide}, 3, []string{"a", "more: deepseek questions"}},
		{[]string{wide}, 2, []string{"more: deepseek questions"}},
	} {
		if got := cutRows(c.lines, 10, c.rows); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d rows: %q", c.lines, c.rows, got)
		}
	}
}

// TestWatchFitsANarrowTerminal: at no width is a word of ours broken.
func TestWatchFitsANarrowTerminal(t *testing.T) {
	for columns := 11; columns < 60; columns++ {
		heading := watchHeading(columns)
		if len(heading) > columns || !strings.HasSuffix(heading, "Ctrl+C ends") {
			t.Errorf("%d columns: %q", columns, heading)
		}
	}
}
