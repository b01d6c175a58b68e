package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"deepseek/internal/model/deepseek"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	prefixSessions = flag.Int("prefix-sessions", 100, "how many random sessions the prefix test plays")
	prefixSeed     = flag.Uint64("prefix-seed", 1, "seed of the first of them, the others follow")
)

// TestEachRequestBeginsWithTheOneBefore plays random sessions: tools, parallel
// calls, bad calls, failed attempts, steering, late answers, cancels, refusals
// that are adapted to, crashes with the log cut wherever it was not yet on disk,
// and resumes. Byte for byte, as they are sent, the messages of each request begin with
// those of the request before, until compaction or an adaptation, the tools
// never change, and every request is one that the strictest server takes.
func TestEachRequestBeginsWithTheOneBefore(t *testing.T) {
	var seeds atomic.Int64
	var wg sync.WaitGroup
	var sum totals
	for range 4 {
		wg.Go(func() {
			for !t.Failed() {
				n := seeds.Add(1)
				if n > int64(*prefixSessions) {
					return
				}
				playSession(t, *prefixSeed+uint64(n)-1, &sum)
			}
		})
	}
	wg.Wait()
	t.Logf("%+v", &sum)
	for what, n := range map[string]*atomic.Int64{
		"requests": &sum.requests, "crashes": &sum.crashes, "compactions": &sum.compactions, "late answers": &sum.late,
		"adaptations": &sum.adaptations, "cancels": &sum.cancels, "requests that were held to the one before": &sum.held,
	} {
		if n.Load() == 0 && *prefixSessions >= 100 {
			t.Errorf("the sessions had no %s: the test shows nothing of them", what)
		}
	}
}

type totals struct {
	requests, held, crashes, compactions, late, adaptations, cancels atomic.Int64
}

func (s *totals) String() string {
	return fmt.Sprintf("%d requests, %d held, %d crashes, %d compactions, %d late answers, %d adaptations, %d cancels",
		s.requests.Load(), s.held.Load(), s.crashes.Load(), s.compactions.Load(), s.late.Load(), s.adaptations.Load(), s.cancels.Load())
}

// wild is a server with moods, and the checks on what it is sent. mu guards the
// chance and what was seen.
type wild struct {
	t    *testing.T
	seed uint64
	sum  *totals
	w    *world // the life that is lived

	mu     sync.Mutex
	rng    *rand.Rand
	epoch  string // what may have changed the messages so far
	before []json.RawMessage
	tools  json.RawMessage
	asked  int
}

func (s *wild) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

func (s *wild) chance(percent int) bool { return s.n(100) < percent }

var messageIDs atomic.Int64

func playSession(t *testing.T, seed uint64, sum *totals) {
	s := &wild{t: t, seed: seed, sum: sum, rng: rand.New(rand.NewPCG(seed, 7))}
	window := []int{1_000_000, 1500, 800}[s.n(3)]
	instructions := []string{"", "use tabs", "use blanks"}
	log := newMemLog()
	for life := range 1 + s.n(3) {
		if s.chance(50) {
			limit := 3 + s.n(40)
			log.fail = func(_ string, op int) error {
				if op >= limit {
					return errDisk
				}
				return nil
			}
		}
		s.w = start(t, log, &play{}, func(o *Options) {
			o.Model = deepseek.New(deepseek.Config{BaseURL: "http://server", Client: &http.Client{Transport: s}})
			o.System, o.Window, o.MaxSteps = fmt.Sprintf("system text of version %d", life), window, 5
			o.NewID = func() string { return fmt.Sprintf("m%d", messageIDs.Add(1)) }
			o.Adapt, o.Instructions = deepseek.Adapt, instructions[s.n(3)]
		}, s.toolsOf()...)
		for range 1 + s.n(2) {
			_, _, err := s.w.Run(t.Context(), RunOptions{Input: Task("task " + s.text(20))}, nil)
			if errors.Is(err, errDisk) {
				break
			}
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
		}
		s.sum.compactions.Add(int64(s.w.count(session.TypeCompactionSummary)))
		cut := len(log.events)
		if s.w.Failure() != nil || s.chance(50) { // killed: anything behind the last sync may be lost
			s.sum.crashes.Add(1)
			cut = log.durable + s.n(len(log.events)-log.durable+1)
		}
		log = newMemLog(append([]session.Event{}, log.events[:cut]...)...)
	}
}

// text is up to n words.
func (s *wild) text(n int) string {
	words := []string{"and", "so", "<on>", "压缩", "\n", `{"a":1}`, "\u2028", "naïve", "🎉", "\\"}
	var b strings.Builder
	for range s.n(n + 1) {
		b.WriteString(words[s.n(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}

func (s *wild) toolsOf() []tool.Tool {
	some := func(ctx context.Context, c tool.Call) tool.Result {
		if s.chance(3) {
			s.cancel()
		}
		if s.chance(20) {
			return tool.Errorf("SOME", "%s", s.text(5))
		}
		return tool.Result{Content: s.text([]int{0, 10, 300}[s.n(3)])}
	}
	ask := fn{session.AskTool, tool.Traits{Person: true, ReadOnly: true}, func(_ context.Context, c tool.Call) tool.Result {
		text, err := session.PendingText(c.ID, "go on")
		r := tool.Result{Content: text, Unanswered: c.ID}
		if err != nil || s.chance(50) && c.Commit(r) != nil {
			return tool.Errorf(tool.CodeInternal, "not committed")
		}
		return r
	}}
	return []tool.Tool{
		fn{"look", tool.Traits{Parallel: true, ReadOnly: true}, some}, fn{"change", tool.Traits{}, some}, timed{ask},
	}
}

func (s *wild) cancel() {
	s.sum.cancels.Add(1)
	if err := s.w.Cancel(context.Background(), session.Cause{Kind: session.CauseUser}, s.chance(70)); err != nil && !errors.Is(err, errDisk) {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
}

// meddle is what happens from outside while the model answers.
func (s *wild) meddle() {
	var err error
	ctx, user := context.Background(), session.Source{Kind: session.SourceUser}
	switch s.n(12) {
	case 0:
		_, err = s.w.Steer(ctx, text("steered "+s.text(5)), user)
	case 1:
		_, err = s.w.Followup(ctx, text("followup "+s.text(5)), user)
	case 2:
		_, err = s.w.Inject(ctx, text("injected"), session.Source{Kind: session.SourcePlugin})
	case 3, 4:
		var q session.Tracked
		s.w.View(func(st *session.State) {
			for _, a := range st.Questions.Active() {
				if _, _, queued := st.Inbox.Reply(a.CallID); !queued {
					q = a
				}
			}
		})
		if q.State != session.QuestionContinued {
			return
		}
		var reply string
		if reply, err = session.ReplyText(q.CallID, q.Questions, []session.Answer{{ID: "a", Custom: s.text(3)}}); err == nil {
			_, err = s.w.Steer(ctx, text(reply), session.Source{Kind: session.SourceQuestionReply, CallID: q.CallID, Outcome: "answered"})
		}
		s.sum.late.Add(1)
	case 5:
		if s.chance(30) {
			s.cancel()
		}
	}
	if err != nil && !errors.Is(err, errDisk) {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
}

// RoundTrip is one request.
func (s *wild) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var body struct {
		Messages []json.RawMessage `json:"messages"`
		Tools    json.RawMessage   `json:"tools"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	s.check(body.Messages, body.Tools)
	s.meddle()
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	switch s.n(30) {
	case 0:
		return reply(r, 500, `{"error":{"message":"busy"}}`), nil
	case 1:
		return reply(r, 400, `{"error":{"message":"this model's maximum context length is exceeded"}}`), nil
	case 2:
		return reply(r, 200, "data: {\"choices\":[{\"delta\":{\"content\":\"cut\"}}]}\n\n"), nil
	case 3:
		if s.n(4) == 0 {
			s.sum.adaptations.Add(1)
			return reply(r, 400, `{"error":{"message":"reasoning_content is not supported"}}`), nil
		}
	}
	return reply(r, 200, s.answer(len(raw))), nil
}

func reply(r *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}
}

// answer is a stream of one message.
func (s *wild) answer(size int) string {
	type object = map[string]any
	delta, finish := object{"content": s.text(30)}, "stop"
	if s.chance(50) {
		delta["reasoning_content"] = s.text(10)
	}
	if s.chance(60) {
		finish = "tool_calls"
		names := []string{"look", "look", "look", "change", session.AskTool, "no such!", "no_such_" + strings.Repeat("x", 80)}
		var list []object
		for i := range 1 + s.n(4) {
			s.asked++
			id := []string{fmt.Sprintf("c%d", s.asked), fmt.Sprintf("c%d", s.asked), "same", "", fmt.Sprintf("c%0100d", s.asked)}[s.n(5)]
			name := names[s.n(len(names))]
			args := `{}`
			if name == session.AskTool {
				args = fmt.Sprintf(`{"questions":[{"id":"a","question":"%d?"}]}`, s.asked)
			} else if s.chance(10) {
				args = []string{`{"cut":`, `[]`, `null`, ""}[s.n(4)]
			}
			list = append(list, object{"index": i, "id": id, "type": "function", "function": object{"name": name, "arguments": args}})
		}
		delta["tool_calls"] = list
	} else if strings.TrimSpace(delta["content"].(string)) == "" {
		delta["content"] = "x"
	}
	chunk := object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}
	if s.chance(70) {
		chunk["usage"] = object{"prompt_tokens": size / 4, "completion_tokens": 20}
	}
	raw, err := json.Marshal(chunk)
	if err != nil {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
	return "data: " + string(raw) + "\n\ndata: [DONE]\n\n"
}

// check holds a request to the one before and to the rules of a strict server.
func (s *wild) check(msgs []json.RawMessage, tools json.RawMessage) {
	s.sum.requests.Add(1)
	compactions, adapted := 0, false
	s.w.log.mu.Lock()
	for _, e := range s.w.log.events {
		switch {
		case e.SurfaceOp != nil, e.Type == session.TypeCompactionPrune:
			compactions++
		case e.Type == session.TypeSettings:
			adapted = adapted || bytes.Contains(e.Data, []byte("adaptations"))
		}
	}
	if s.w.log.durable < len(s.w.log.events) && s.w.log.fail == nil {
		s.t.Errorf("seed %d: a request is sent before the log is on disk", s.seed)
	}
	s.w.log.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	epoch := fmt.Sprint(compactions, adapted)
	fail := func(format string, args ...any) {
		s.t.Errorf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
	}
	if problem := strict(msgs); problem != "" {
		fail("%s", problem)
	}
	if s.tools != nil && !bytes.Equal(s.tools, tools) {
		fail("the tools were\n%s\nand are\n%s", s.tools, tools)
	}
	s.tools = tools
	history := msgs
	summary := bytes.Contains(msgs[len(msgs)-1], []byte("will take the place of everything before it"))
	if summary {
		history = msgs[:len(msgs)-1]
	}
	if s.before != nil && s.epoch == epoch {
		s.sum.held.Add(1)
		n := len(s.before)
		if summary { // of what a server found too long, only the beginning
			n = min(n, len(history))
		}
		for i := range n {
			if i >= len(history) || !bytes.Equal(s.before[i], history[i]) {
				fail("of %d messages, number %d was\n%s\nand is not the same among %d:\n%s", len(s.before), i, s.before[i], len(history), history[min(i, len(history)-1)])
				break
			}
		}
	}
	if s.epoch != epoch || len(history) >= len(s.before) {
		s.before, s.epoch = history, epoch
	}
}

// strict is the first rule of the strictest servers that the messages break.
func strict(msgs []json.RawMessage) string {
	seen := map[string]bool{}
	var owed []string
	for i, raw := range msgs {
		var m struct {
			Role       string  `json:"role"`
			Content    *string `json:"content"`
			ToolCallID string  `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return err.Error()
		}
		answers := m.Role == "tool"
		switch {
		case m.Content == nil, answers && *m.Content == "":
			return fmt.Sprintf("message %d (%s) has no content", i, m.Role)
		case (i == 0) != (m.Role == "system"):
			return fmt.Sprintf("message %d is the %s's", i, m.Role)
		case answers != (len(owed) > 0) || answers && m.ToolCallID != owed[0]:
			return fmt.Sprintf("message %d (%s, %q) stands where answers to %q are owed", i, m.Role, m.ToolCallID, owed)
		case m.Role == "assistant" && *m.Content == "" && len(m.ToolCalls) == 0:
			return fmt.Sprintf("message %d says nothing", i)
		}
		if answers {
			owed = owed[1:]
		}
		for _, c := range m.ToolCalls {
			var args map[string]any
			if c.ID == "" || len(c.ID) > maxCallID || len(c.Function.Name) > 64 || seen[c.ID] || json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || args == nil ||
				c.Function.Name == "" || strings.ContainsFunc(c.Function.Name, func(r rune) bool { return r == ' ' || r == '!' }) {
				return fmt.Sprintf("message %d: call %+v", i, c)
			}
			seen[c.ID] = true
			owed = append(owed, c.ID)
		}
		if i == len(msgs)-1 && (m.Role == "assistant" || m.Role == "system") {
			return fmt.Sprintf("the last message is the %s's", m.Role)
		}
	}
	if len(owed) > 0 {
		return fmt.Sprintf("no answers to %q", owed)
	}
	return ""
}

// TestTheCheckOfThePrefixChecks: a check that lets everything pass shows nothing.
func TestTheCheckOfThePrefixChecks(t *testing.T) {
	msg := func(s string) json.RawMessage { return json.RawMessage(s) }
	sys, user := msg(`{"role":"system","content":"s"}`), msg(`{"role":"user","content":"u"}`)
	call := msg(`{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}`)
	res := msg(`{"role":"tool","content":"r","tool_call_id":"a"}`)
	good := []json.RawMessage{sys, user, call, res}
	if p := strict(good); p != "" {
		t.Error(p)
	}
	for name, bad := range map[string][]json.RawMessage{
		"an orphan":         {sys, user, res},
		"an unanswered one": {sys, user, call},
		"something between": {sys, user, call, user, res},
		"an id used twice":  {sys, user, call, res, call, res},
		"a second system":   {sys, sys, user},
		"a long name":       {sys, user, msg(strings.Replace(string(call), `"f"`, `"`+strings.Repeat("f", 65)+`"`, 1)), res},
		"a long id":         {sys, user, msg(strings.Replace(string(call), `"a"`, `"`+strings.Repeat("a", maxCallID+1)+`"`, 1)), msg(strings.Replace(string(res), `"a"`, `"`+strings.Repeat("a", maxCallID+1)+`"`, 1))},
		"assistant at last": {sys, user, msg(`{"role":"assistant","content":"x"}`)},
	} {
		if strict(bad) == "" {
			t.Errorf("%s passes", name)
		}
	}
}
