package deepseek_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	deepseek "deepseek/sdk"
)

// failing are the ways in which a handler does not answer.
var failing = map[string]deepseek.Handler{
	"error": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		return nil, errors.New("oh")
	},
	"canceled": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		return nil, context.Canceled // of something of its own
	},
	"panic": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) { panic("oh") },
	"exit": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		runtime.Goexit()
		return nil, nil
	},
	"label": func(_ context.Context, q deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		return []deepseek.Answer{{ID: q.Questions[0].ID, Selected: []string{"maybe"}}}, nil
	},
	"empty": func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) {
		return []deepseek.Answer{}, nil
	},
}

// What a failing handler leaves would wait for ever.
func TestAnApprovalWhoseHandlerFailsIsDenied(t *testing.T) {
	t.Parallel()
	for name, h := range failing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			o := b.options("approval.yaml")
			o.Permission, o.OnApproval = "workspace-write", h
			r, err := b.start(o).Run(testContext(t), "go")
			var failed *deepseek.HandlerError
			if !errors.As(err, &failed) || r == nil || r.Denied != 1 || r.FinalResponse != "after" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestNoAnswerToAnApprovalIsANo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	o := b.options("approval.yaml")
	o.Permission = "workspace-write"
	o.OnApproval = func(context.Context, deepseek.QuestionRequest) ([]deepseek.Answer, error) { return nil, nil }
	r, err := b.start(o).Run(testContext(t), "go")
	if err != nil || r.Denied != 1 || r.FinalResponse != "after" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestAQuestionWithoutATimeWhoseHandlerFailsIsClosed(t *testing.T) {
	t.Parallel()
	for mode, name := range map[string]string{"legacy": "label", "timed": "error"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			o := b.options("untimed.yaml")
			o.Mode, o.OnQuestion = mode, failing[name]
			if mode == "timed" {
				o.Timeout = -1
			}
			r, err := b.start(o).Run(testContext(t), "go")
			var failed *deepseek.HandlerError
			if !errors.As(err, &failed) || r == nil || r.FinalResponse != "after" || *r.FinishReason != "completed" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestAnEmptyListOfAnswersIsABadAnswer(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.release()
	o := b.options("asking.yaml")
	o.OnQuestion = failing["empty"]
	_, err := b.start(o).Run(testContext(t), "go")
	var refused *deepseek.RefusedError
	if !errors.As(err, &refused) || refused.Code != "BAD_ANSWER" || !strings.Contains(err.Error(), `question "port" is not answered`) {
		t.Errorf("%v", err)
	}
}

func TestARunThatIsCutShortTellsOfItsHandler(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	o := b.options("closed.yaml") // whose command comes behind the failure
	o.OnQuestion, o.Timeout = failing["error"], -1
	c := b.start(o)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	told := c.Events(testContext(t), "")
	go func() {
		for n, err := range told {
			if err != nil || calls(n, "wait1") {
				cancel()
				return
			}
		}
	}()
	_, err := c.Run(ctx, "go")
	var failed *deepseek.HandlerError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &failed) || !strings.Contains(err.Error(), "oh") {
		t.Errorf("%v", err)
	}
}

// slow answers the second request when it may, and notes what comes behind it.
const slow = `
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r l; until [ -e "$0/go" ]; do sleep 0.02; done; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","messageId":"m"}}'
read -r l; echo "$l" >"$0/third"; echo '{"jsonrpc":"2.0","method":"session.status","params":{"sessionId":"s","status":"idle"}}'
cat >/dev/null`

func TestARunIsCancelledThoughItsPromptIsNotAnsweredYet(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	c := b.start(deepseek.Options{Command: []string{"sh", "-c", slow, b.ws}})
	told := c.Events(testContext(t), "s")
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := c.Run(ctx, "go"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b.release()
	for _, err := range told {
		if err != nil {
			t.Fatalf("nothing came behind the prompt: %v", err)
		}
		break
	}
	third, err := os.ReadFile(filepath.Join(b.ws, "third"))
	if err != nil || !strings.Contains(string(third), `"session/cancel"`) || !strings.Contains(string(third), `"s"`) {
		t.Errorf("%s %v", third, err)
	}
}

func TestARequestThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	c := b.start(b.options("plain.yaml"))
	_, err := c.Run(testContext(t), strings.Repeat("x", 64<<20))
	var refused *deepseek.RefusedError
	if !errors.As(err, &refused) || refused.Code != "INVALID_REQUEST" || !strings.Contains(err.Error(), "67108864") {
		t.Errorf("%v", err)
	}
	if r, err := c.Run(testContext(t), "go"); err != nil || r.FinalResponse != "first" {
		t.Errorf("the connection goes on: %+v %v", r, err)
	}
}

// measured answers the second request with the length of its line.
const measured = `
read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"'${#l}'","messageId":"m"}}'
cat >/dev/null`

// Nothing is spent on escapes that only HTML needs.
func TestAMessageCostsWhatItIs(t *testing.T) {
	t.Parallel()
	c, err := deepseek.Start(testContext(t), deepseek.Options{Command: []string{"sh", "-c", measured}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	text := strings.Repeat("<&>", 100)
	want := len(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"contentBlocks":[{"type":"text","text":"`+text) + len(`"}]}}`)
	if got, _, err := c.Prompt(testContext(t), "", text); err != nil || got != strconv.Itoa(want) {
		t.Errorf("%s bytes, want %d: %v", got, want, err)
	}
}

// unnamed answers the second request with an error that names none.
const unnamed = `
read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read l; echo '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}'
read l; echo '{"jsonrpc":"2.0","id":3,"result":{"sessions":[]}}'
cat >/dev/null`

func TestAnErrorWithoutAnIDFailsTheRequestInHand(t *testing.T) {
	t.Parallel()
	c, err := deepseek.Start(testContext(t), deepseek.Options{Command: []string{"sh", "-c", unnamed}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.Run(testContext(t), "go")
	var refused *deepseek.RefusedError
	if !errors.As(err, &refused) || refused.Code != "INVALID_REQUEST" || refused.Message != "what?" {
		t.Errorf("run: %v", err)
	}
	if _, err := c.Sessions(testContext(t)); err != nil {
		t.Errorf("the next: %v", err)
	}
}
