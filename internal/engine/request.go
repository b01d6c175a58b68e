package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// request sends the history and returns the model's answer. Where the server
// finds the history too long, it is compacted once, and sent again if that made
// it shorter.
func (a *Agent) request(ctx context.Context, turn, step int) (model.Response, error) {
	r := sending{turn: turn, step: step, shape: whole, sink: a.delta(turn, step)}
	var err error
	if r.body, err = a.header(); err != nil {
		return model.Response{}, err
	}
	if err := a.makeRoom(ctx, r); err != nil {
		return model.Response{}, err
	}
	resp, err := a.send(ctx, r)
	if !tooLong(err) {
		return resp, err
	}
	shorter, failed := a.compact(ctx, r, overLimit)
	if failed != nil {
		return model.Response{}, failed
	}
	if !shorter {
		return resp, err
	}
	return a.send(ctx, r)
}

// sending is a request of a step: what stands before the messages, what is made
// of them, and who is told as the answer streams, if anybody.
type sending struct {
	turn, step int
	body       session.HeaderBody
	shape      func([]session.Message) []session.Message
	sink       func(model.Delta)
}

// whole sends the history as it is.
func whole(history []session.Message) []session.Message { return history }

func tooLong(err error) bool {
	var e *model.Error
	return errors.As(err, &e) && e.Code == model.CodeContextWindow
}

// send makes a request of the log's state and returns the answer: retried as
// the policy allows, and once more with each adaptation that the server turns out
// to need. The log holds everything that the request is made of before it is sent.
func (a *Agent) send(ctx context.Context, r sending) (model.Response, error) {
	before := 0 // attempts, of the requests that an adaptation has replaced
	for {
		req, err := a.prepare(r)
		if err != nil {
			return model.Response{}, err
		}
		if err := a.sync(ctx); err != nil {
			return model.Response{}, err
		}
		attempts := 0
		resp, err := model.Run(ctx, model.Retry{
			Sleep: a.opts.Sleep,
			Wait: func(attempt int, delay time.Duration, e *model.Error) error {
				return a.retrying(ctx, r, before+attempt, delay, e)
			},
			Start: func(attempt int) error { return a.retry(ctx, r, before+attempt) },
		}, func(ctx context.Context) (model.Response, error) {
			attempts++
			return a.opts.Model.Generate(ctx, req, r.sink)
		})
		before += attempts
		adapted, failed := a.adapt(ctx, r, before, req.Adaptations, err)
		if failed != nil {
			return model.Response{}, failed
		}
		if !adapted {
			return resp, err
		}
	}
}

// retrying logs that an attempt failed and is repeated. Whoever watches is told before the wait.
func (a *Agent) retrying(ctx context.Context, r sending, attempt int, delay time.Duration, e *model.Error) error {
	err := a.append(item{session.TypeLLMRetry, session.Retry{
		Turn: r.turn, Step: r.step, Attempt: attempt, DelayMS: delay.Milliseconds(),
		Error: session.ErrorInfo{Code: e.Code, Message: e.Message, Status: e.Status},
	}})
	if err != nil {
		return err
	}
	return a.sync(ctx)
}

// retry logs that an attempt begins.
func (a *Agent) retry(ctx context.Context, r sending, attempt int) error {
	if err := a.append(item{session.TypeLLMRetryStarted, session.RetryStarted{Turn: r.turn, Step: r.step, Attempt: attempt}}); err != nil {
		return err
	}
	return a.sync(ctx)
}

// adapt takes up what the server's refusal shows that it needs, for the rest of
// the session, and tells whether the request is to be made once more. Nothing is
// taken up twice, so a server that contradicts itself comes to an end.
func (a *Agent) adapt(ctx context.Context, r sending, attempt int, have []string, err error) (bool, error) {
	var refusal *model.Error
	if a.opts.Adapt == nil || !errors.As(err, &refusal) {
		return false, nil
	}
	need, ok := a.opts.Adapt(refusal, have)
	if !ok || slices.Contains(have, need) {
		return false, nil
	}
	if err := a.retrying(ctx, r, attempt, 0, refusal); err != nil {
		return false, err
	}
	a.mu.Lock()
	settings := a.settings()
	settings.Adaptations = append(slices.Clone(have), need)
	err = a.put(item{session.TypeSettings, settings})
	a.mu.Unlock()
	if err != nil {
		return false, err
	}
	return true, a.retry(ctx, r, attempt+1)
}

// settings are those of the options, with the adaptations that the log has: what
// a server needs is found in a run, and stays. The caller holds mu.
func (a *Agent) settings() session.Settings {
	s := a.opts.Settings
	if logged := a.state.Settings; logged != nil {
		s.Adaptations = logged.Adaptations
	}
	return s
}

// header is what stands before the messages of the next request. It is logged
// where it differs from the last.
func (a *Agent) header() (session.HeaderBody, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body := session.HeaderBody{Config: a.opts.Config, System: a.opts.System, Tools: a.offered().Specs()}
	if last, ok, err := a.state.HeaderBody(); err != nil {
		return body, err
	} else if ok {
		// What the server has cached begins with the system text: a session keeps its own for life.
		body.System = last.System
	}
	return body, a.logHeader(body)
}

// prepare builds the request from the log's state.
func (a *Agent) prepare(r sending) (model.Request, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	msgs, err := a.state.History.Messages()
	if err != nil {
		return model.Request{}, err
	}
	return model.Request{
		Config: r.body.Config, System: r.body.System, Messages: r.shape(msgs), Tools: r.body.Tools,
		Adaptations: a.settings().Adaptations, Committed: a.state.Committed,
	}, nil
}

// logHeader appends request/header and request/context where they differ from
// the last, and the header once on a resume. The caller holds mu.
func (a *Agent) logHeader(body session.HeaderBody) error {
	same := a.headed != nil && reflect.DeepEqual(body, *a.headed)
	if !same {
		raw, err := session.Marshal(body)
		if err != nil {
			return err
		}
		if a.opts.Redact != nil {
			raw = a.opts.Redact(raw)
		}
		same = bytes.Equal(raw, a.state.LastHeader)
	}
	reason := session.HeaderInitial
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
	if len(batch) > 0 {
		if err := a.put(batch...); err != nil {
			return err
		}
	}
	a.headed = &body
	return nil
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
		if a.opts.Redact != nil { // tools and people are shown what the log holds
			c.Arguments = string(a.opts.Redact([]byte(c.Arguments)))
		}
		calls[i] = c
	}
	return calls, a.put(item{session.TypeAssistantMessage, session.AssistantMessage{
		Turn: turn, Step: step, Message: a.modelMessage(resp, calls), Usage: a.priced(resp.Usage),
	}})
}

// priced is a usage with what it costs, as far as that is known.
func (a *Agent) priced(usage *session.Usage) *session.Usage {
	if usage == nil || a.opts.Cost == nil {
		return usage
	}
	u := *usage
	if usd, ok := a.opts.Cost(u); ok {
		u.CostUSD = &usd
	}
	return &u
}

// commitCut logs what a cancelled stream had delivered, without its calls.
func (a *Agent) commitCut(turn, step int, resp model.Response) error {
	if resp.Text == "" && resp.Reasoning == "" {
		return nil
	}
	return a.append(item{session.TypeAssistantMessage, session.AssistantMessage{
		Turn: turn, Step: step, Message: a.modelMessage(resp, nil), Usage: a.priced(resp.Usage), Interrupted: true,
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

// maxCallID is how long an id may be, in bytes.
const maxCallID = 128

// validCallID tells whether the id may stand in a shell command and a file name.
func validCallID(id string) bool {
	return id != "" && len(id) <= maxCallID && !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("_.:-", r))
	})
}

// usedCallID is State.UsedCallID for callers that do not hold mu.
func (a *Agent) usedCallID(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.UsedCallID(id)
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
