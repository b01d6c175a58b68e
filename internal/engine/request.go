package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// request sends the history and returns the model's answer, retried as the
// policy allows. The log holds everything that the request is made of before
// it is sent.
func (a *Agent) request(ctx context.Context, turn, step int) (model.Response, error) {
	req, err := a.prepare()
	if err != nil {
		return model.Response{}, err
	}
	if err := a.sync(ctx); err != nil {
		return model.Response{}, err
	}
	return model.Run(ctx, model.Retry{
		Sleep: a.opts.Sleep,
		Wait: func(attempt int, delay time.Duration, e *model.Error) error {
			err := a.append(item{session.TypeLLMRetry, session.Retry{
				Turn: turn, Step: step, Attempt: attempt, DelayMS: delay.Milliseconds(),
				Error: session.ErrorInfo{Code: e.Code, Message: e.Message, Status: e.Status},
			}})
			if err != nil {
				return err
			}
			return a.sync(ctx) // whoever watches is told before the wait
		},
		Start: func(attempt int) error {
			if err := a.append(item{session.TypeLLMRetryStarted, session.RetryStarted{Turn: turn, Step: step, Attempt: attempt}}); err != nil {
				return err
			}
			return a.sync(ctx)
		},
	}, func(ctx context.Context) (model.Response, error) {
		return a.opts.Model.Generate(ctx, req, a.delta(turn, step))
	})
}

// prepare builds the request from the log's state and logs its header where it differs.
func (a *Agent) prepare() (model.Request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body := session.HeaderBody{Config: a.opts.Config, System: a.opts.System, Tools: a.opts.Tools.Specs()}
	if last, ok, err := a.state.HeaderBody(); err != nil {
		return model.Request{}, err
	} else if ok {
		// What the server has cached begins with the system text: a session keeps its own for life.
		body.System = last.System
	}
	if err := a.logHeader(body); err != nil {
		return model.Request{}, err
	}
	msgs, err := a.state.History.Messages()
	if err != nil {
		return model.Request{}, err
	}
	return model.Request{
		Config: body.Config, System: body.System, Messages: msgs, Tools: body.Tools,
		Adaptations: a.opts.Settings.Adaptations, Committed: a.state.Committed,
	}, nil
}

// logHeader appends request/header and request/context where they differ from
// the last, and the header once on a resume. The caller holds mu.
func (a *Agent) logHeader(body session.HeaderBody) error {
	raw, err := session.Marshal(body)
	if err != nil {
		return err
	}
	if a.opts.Redact != nil {
		raw = a.opts.Redact(raw)
	}
	reason := session.HeaderInitial
	same := bytes.Equal(raw, a.state.LastHeader)
	switch {
	case a.state.LastHeader == nil:
	case !same:
		reason = session.HeaderChange
	case a.resumed:
		reason = session.HeaderResume
	}
	var batch []item
	if !same || a.resumed {
		batch = append(batch, item{session.TypeRequestHeader, session.RequestHeader{Header: body, Reason: reason}})
	}
	a.resumed = false
	rc := session.RequestContext{Provider: body.Config.Provider, Model: body.Config.Model, ContextWindow: a.opts.Window}
	if rc != a.state.LastContext {
		batch = append(batch, item{session.TypeRequestContext, rc})
	}
	if len(batch) == 0 {
		return nil
	}
	return a.put(batch...)
}

// commit logs the answer and returns its calls with the ids that they keep.
func (a *Agent) commit(turn, step int, resp model.Response) ([]session.Call, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := make([]session.Call, len(resp.Calls))
	taken := map[string]bool{}
	for i, c := range resp.Calls {
		if !validCallID(c.ID) || taken[c.ID] || a.state.UsedCallID(c.ID) {
			c.ID = a.newCallID(taken)
		}
		taken[c.ID] = true
		calls[i] = c
	}
	usage := resp.Usage
	if usage != nil && a.opts.Cost != nil {
		u := *usage
		if usd, ok := a.opts.Cost(u); ok {
			u.CostUSD = &usd
		}
		usage = &u
	}
	return calls, a.put(item{session.TypeAssistantMessage, session.AssistantMessage{
		Turn: turn, Step: step, Message: a.modelMessage(resp, calls), Usage: usage,
	}})
}

// commitCut logs what a cancelled stream had delivered, without its calls.
func (a *Agent) commitCut(turn, step int, resp model.Response) error {
	if resp.Text == "" && resp.Reasoning == "" {
		return nil
	}
	return a.append(item{session.TypeAssistantMessage, session.AssistantMessage{
		Turn: turn, Step: step, Message: a.modelMessage(resp, nil), Usage: resp.Usage, Interrupted: true,
	}})
}

func (a *Agent) modelMessage(resp model.Response, calls []session.Call) session.ModelMessage {
	content := []session.Block{}
	if resp.Reasoning != "" {
		content = append(content, session.Block{Type: session.BlockReasoning, Text: resp.Reasoning})
	}
	if resp.Text != "" {
		content = append(content, session.Block{Type: session.BlockText, Text: resp.Text})
	}
	for _, c := range calls {
		content = append(content, session.Block{Type: session.BlockToolCall, ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	cfg := a.opts.Config
	return session.ModelMessage{
		ID: a.opts.NewID(), Role: string(session.RoleAssistant), Content: content,
		Source: session.Source{Kind: session.SourceModel, Provider: cfg.Provider, Model: cfg.Model},
	}
}

// validCallID tells whether the id may stand in a shell command and a file name.
func validCallID(id string) bool {
	return id != "" && len(id) <= 128 && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("_.:-", r))
	})
}

// newCallID is an id that no call of this session has had. The caller holds mu.
func (a *Agent) newCallID(taken map[string]bool) string {
	for {
		var b [6]byte
		_, _ = rand.Read(b[:]) // never fails
		if id := "call_" + hex.EncodeToString(b[:]); !taken[id] && !a.state.UsedCallID(id) {
			return id
		}
	}
}

// delta is the sink for streamed text, nil-safe for the many runs that nobody watches.
func (a *Agent) delta(turn, step int) func(model.Delta) {
	return func(d model.Delta) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for f := range a.feeds {
			f.push(FeedItem{Delta: &Delta{Turn: turn, Step: step, Kind: d.Kind, Text: d.Text}}, a.state.Next)
		}
	}
}
