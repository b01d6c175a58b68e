package script

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// Script is a script of answers. It never changes after Load, so it is safe
// for concurrent use.
type Script struct {
	path      string
	responses []response
}

type response struct {
	text, reasoning string
	calls           []session.Call
	finish          string
	delay           time.Duration
	usage           *session.Usage
	failure         *model.Error
}

var _ model.Model = (*Script)(nil)

// Provider names the model.
func (s *Script) Provider() string { return "script" }

// Generate plays the entry that req.Committed counts to.
func (s *Script) Generate(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
	if err := ctx.Err(); err != nil {
		return model.Response{}, err
	}
	if req.Committed < 0 || req.Committed >= len(s.responses) {
		return model.Response{}, &model.Error{
			Code:    model.CodeScriptExhausted,
			Message: fmt.Sprintf("%s has %d responses and the session asks for number %d", s.path, len(s.responses), req.Committed+1),
		}
	}
	r := s.responses[req.Committed]
	if err := wait(ctx, r.delay); err != nil {
		return model.Response{}, err
	}
	if r.failure != nil {
		failure := *r.failure
		return model.Response{}, &failure
	}
	out, err := stream(ctx, r.reasoning, r.text, sink)
	if err != nil {
		return out, err
	}
	return r.finished(out)
}

// finished judges an entry as the wire judges a stream.
func (r response) finished(out model.Response) (model.Response, error) {
	if r.usage != nil {
		usage := *r.usage
		out.Usage = &usage
	}
	switch r.finish {
	case "", "stop", "tool_calls":
		out.Finish = model.FinishStop
		if len(r.calls) > 0 {
			out.Finish, out.Calls = model.FinishToolCalls, append([]session.Call(nil), r.calls...)
		} else if out.Text == "" {
			return model.Response{}, &model.Error{Code: model.CodeEmptyResponse, Message: "the script's entry has neither text nor tool calls"}
		}
	case "length":
		out.Finish = model.FinishLength
	default:
		return model.Response{}, &model.Error{Code: r.finish, Message: "the script ends the answer with this reason"}
	}
	return out, nil
}

const deltaRunes = 16

// stream sends reasoning and text in small pieces and returns what was sent.
func stream(ctx context.Context, reasoning, text string, sink func(model.Delta)) (model.Response, error) {
	var sent [2]strings.Builder
	parts := [2]struct{ kind, all string }{{session.BlockReasoning, reasoning}, {session.BlockText, text}}
	var err error
	for i, p := range parts {
		for _, piece := range pieces(p.all) {
			if err = ctx.Err(); err != nil {
				break
			}
			sent[i].WriteString(piece)
			if sink != nil {
				sink(model.Delta{Kind: p.kind, Text: piece})
			}
		}
	}
	return model.Response{Reasoning: sent[0].String(), Text: sent[1].String()}, err
}

func pieces(s string) []string {
	var out []string
	start, n := 0, 0
	for i := range s {
		if n == deltaRunes {
			out = append(out, s[start:i])
			start, n = i, 0
		}
		n++
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
