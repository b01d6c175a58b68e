package engine

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// breaks streams some text and then fails.
func breaks(text string, e *model.Error) answer {
	return func(_ context.Context, _ model.Request, sink func(model.Delta)) (model.Response, error) {
		if text != "" {
			sink(model.Delta{Kind: session.BlockText, Text: text})
		}
		return model.Response{}, e
	}
}

// toldOf is what a subscriber is told: deltas as kind:text, and the types of events
// that matter.
func toldOf(t *testing.T, w *world, run func()) string {
	t.Helper()
	f, err := w.Subscribe(0, true)
	if err != nil {
		t.Fatal(err)
	}
	run()
	w.log.close()
	var out []string
	for {
		it, err := f.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if it.Delta != nil {
			out = append(out, it.Delta.Kind+":"+it.Delta.Text)
		}
		for _, l := range it.Lines {
			switch l.Type {
			case session.TypeLLMRetry, session.TypeCompactionStart, session.TypeAssistantMessage, session.TypeTurnEnd:
				out = append(out, l.Type)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	return strings.Join(out, " ")
}

// Who saw the text of an attempt that failed learns from the log that it does not
// count: by llm/retry, or where no attempt follows by the turn's end without a message.
func TestWhatWasStreamedOfAFailedAttemptIsInNoMessage(t *testing.T) {
	filtered := &model.Error{Code: "content_filter", Message: "no"}
	busy := &model.Error{Code: model.CodeServer, Message: "busy"}
	for _, c := range []struct {
		name string
		next []answer
		want string
	}{
		{"for good", []answer{breaks("PART", filtered)}, "text:PART turn/end"},
		{"for good, and nothing was streamed", []answer{breaks("", filtered)}, "turn/end"},
		{"tried again", []answer{breaks("PART", busy), says("done")}, "text:PART llm/retry text:done assistant/message turn/end"},
		{"tried again, and then for good before any text", []answer{breaks("PART", busy), breaks("", filtered)}, "text:PART llm/retry turn/end"},
		{
			"tried too often",
			[]answer{fails(busy), fails(busy), fails(busy), fails(busy), fails(busy), breaks("PART", busy)},
			"llm/retry llm/retry llm/retry llm/retry llm/retry text:PART turn/end",
		},
		{"a wait that is too long", []answer{breaks("PART", &model.Error{Code: model.CodeRateLimit, RetryAfter: 2 * model.MaxRetryAfter})}, "text:PART turn/end"},
		{
			"adapted to",
			[]answer{breaks("PART", &model.Error{Code: model.CodeInvalidRequest, Message: "need a", Status: 400}), says("done")},
			"text:PART llm/retry text:done assistant/message turn/end",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, newMemLog(), &play{next: c.next}, adapting)
			if got := toldOf(t, w, func() { w.run("x") }); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestTextBeforeACompactionThatTheServerAskedForIsDiscarded(t *testing.T) {
	tooLong := &model.Error{Code: model.CodeContextWindow, Message: "too long"}
	w := start(t, newMemLog(), &play{next: []answer{calls("f:a"), breaks("PART", tooLong), costs("a summary", session.Usage{}), says("done")}},
		func(o *Options) { o.Window = 100_000 }, fn{"f", tool.Traits{}, ok(words(40_000))})
	want := "assistant/message text:PART compaction/start text:done assistant/message turn/end"
	if got := toldOf(t, w, func() { w.run(words(2000)) }); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What a cancel left of an answer is committed, and not discarded.
func TestACancelledAnswerIsNoDiscardedOne(t *testing.T) {
	var w *world
	cut := func(ctx context.Context, _ model.Request, sink func(model.Delta)) (model.Response, error) {
		sink(model.Delta{Kind: session.BlockText, Text: "PART"})
		if err := w.Cancel(context.Background(), session.Cause{Kind: session.CauseUser}, true); err != nil {
			t.Error(err)
		}
		return model.Response{Text: "PART"}, ctx.Err()
	}
	w = start(t, newMemLog(), &play{next: []answer{cut}}, nil)
	if got := toldOf(t, w, func() { w.run("x") }); got != "text:PART assistant/message turn/end" {
		t.Errorf("got %s", got)
	}
}
