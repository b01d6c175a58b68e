package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

var _ Claim = (*question.Claim)(nil)

func TestEveryMethodReachesTheHost(t *testing.T) {
	o := serveHost(t, newHost())
	o.log("turn/start", session.TurnStart{Turn: 1})
	c := o.dial(t)
	ctx := testContext(t)

	if id, err := c.Prompt(ctx, text("a")); id != "m-a" || err != nil {
		t.Errorf("prompt: %q %v", id, err)
	}
	if id, err := c.Steer(ctx, text("b")); id != "s-b" || err != nil {
		t.Errorf("steer: %q %v", id, err)
	}
	if err := c.Cancel(ctx, true); err != nil {
		t.Errorf("cancel: %v", err)
	}
	page, err := c.Read(ctx, 0)
	if err != nil || page.Header.ID != o.id || len(page.Events) != 1 || page.NextSeq != 1 || page.More {
		t.Errorf("read: %+v %v", page, err)
	}
	if string(page.Events[0]) != string(o.events[0]) {
		t.Errorf("event is %s", page.Events[0])
	}
	if ok, err := c.Answer(ctx, "c1", []session.Answer{{ID: "q", Selected: []string{}}}); !ok || err != nil {
		t.Errorf("answer: %v %v", ok, err)
	}
	var refused *Error
	if _, err := c.Answer(ctx, "queued", []session.Answer{}); !errors.As(err, &refused) || refused.Code != question.CodeReplyQueued {
		t.Errorf("answer to a question with a queued reply: %v", err)
	}
	if ok, err := c.Withdraw(ctx, "queued"); !ok || err != nil {
		t.Errorf("withdraw: %v %v", ok, err)
	}
	if list, err := c.Questions(ctx); err != nil || list.Active == nil || list.Settled == nil || list.Waits == nil {
		t.Errorf("questions: %+v %v", list, err)
	}
	if err := c.Ping(ctx); err != nil {
		t.Errorf("ping: %v", err)
	}
	want := "prompt a;steer b;cancel true;answer c1 1;answer queued 0;withdraw queued"
	if got := strings.Join(o.recorded(), ";"); got != want {
		t.Errorf("the host was asked for\n%s\nwant\n%s", got, want)
	}
}

func TestInitializeIsOptionalAndStdioMethodsAreUnknown(t *testing.T) {
	o := serveHost(t, newHost())
	c := o.dial(t)
	var res InitializeResult
	if err := c.call(testContext(t), MethodInitialize, InitializeParams{Cwd: "/"}, &res); err != nil {
		t.Fatal(err)
	}
	if res.ServerInfo != (ServerInfo{"deepseek", "1.2.3"}) || res.ProtocolVersion != 1 || res.Capabilities.Approvals {
		t.Errorf("initialize: %+v", res)
	}
	var again *Error
	if err := c.call(testContext(t), MethodInitialize, InitializeParams{Cwd: "/"}, &res); !errors.As(err, &again) || again.Code != CodeAlreadyInitialized {
		t.Errorf("initialize again: %v", err)
	}
	for _, m := range []string{MethodShutdown, MethodClose, MethodSessions, "rpc.serverInfo", "nonsense"} {
		var refused *Error
		if err := c.call(testContext(t), m, Empty{}, &Empty{}); !errors.As(err, &refused) || refused.Code != CodeMethodNotFound {
			t.Errorf("%s: %v", m, err)
		}
	}
}

func TestWrongParametersAreRefusedWithTheirPath(t *testing.T) {
	o := serveHost(t, newHost())
	c := o.dial(t)
	for _, tt := range []struct{ method, params, path, text string }{
		{MethodPrompt, `{"contentBlocks":[{"type":"text","text":5}]}`, "contentBlocks[0].text", "got a number, want a string"},
		{MethodPrompt, `{"contentBlocks":[{"type":"reasoning","text":"x"}]}`, "contentBlocks[0].type", `must be "text"`},
		{MethodPrompt, `{"contentBlocks":[]}`, "contentBlocks", "at least 1"},
		{MethodPrompt, `{"contentBlocks":[{"type":"text","text":"a"},{"type":"text","text":""}]}`, "contentBlocks[1].text", "empty"},
		{MethodPrompt, `{"contentBlocks":[{"type":"text","text":" \n"},{"type":"text","text":"\t"}]}`, "contentBlocks", "white space alone"},
		{MethodSteer, `{"contentBlocks":[{"type":"text","text":" "}]}`, "contentBlocks", "white space alone"},
		{MethodPrompt, `{"sessionId":"","contentBlocks":[{"type":"text","text":"a"}]}`, "sessionId", "is empty"},
		{MethodInitialize, `{"mode":""}`, "mode", "is empty"},
		{MethodPrompt, `{}`, "contentBlocks", "is missing"},
		{MethodPrompt, `{"ContentBlocks":[]}`, "ContentBlocks", "unknown"},
		{MethodPrompt, `[1]`, "params", "got an array, want an object"},
		{MethodPing, `5`, "params", "got a number, want an object"},
		{MethodCancel, `"x"`, "params", "got a string, want an object"},
		{MethodCancel, `true`, "params", "got a boolean, want an object"},
		{MethodRead, `{"fromSeq":-1}`, "fromSeq", "at least 0"},
		{MethodRead, `{"fromSeq":1.5}`, "fromSeq", "whole number"},
		{MethodCancel, `{"keepInbox":"yes"}`, "keepInbox", "got a string, want a boolean"},
		{MethodAttach, `{}`, "callId", "is missing"},
		{MethodAnswer, `{"callId":"c","answers":[{"id":"q","selected":null}]}`, "answers[0].selected", "got null, want an array"},
		{MethodRespond, `{"callId":"c"}`, "params", "either answers or error"},
		{MethodRespond, `{"callId":"c","error":{"code":"NO"}}`, "error.code", "ASK_TIMED_OUT"},
		{MethodPing, `{"x":1}`, "x", "unknown; there are no parameters"},
		{MethodRead, `{"fromSeq":1e300}`, "fromSeq", "whole number"},
		{MethodRead, `{"fromSeq":9007199254740993.0}`, "fromSeq", "whole number"},
		{MethodRead, `{"fromSeq":-1.0}`, "fromSeq", "at least 0, is -1"},
		{MethodRespond, `{"callId":"c","answers":[],"error":{"code":"ASK_TIMED_OUT"}}`, "params", "either answers or error"},
	} {
		var refused *Error
		err := c.call(testContext(t), tt.method, json.RawMessage(tt.params), &Empty{})
		if !errors.As(err, &refused) || refused.Code != CodeInvalidParams || !strings.Contains(refused.Message, tt.text) {
			t.Errorf("%s %s: %v", tt.method, tt.params, err)
		} else if refused.Path != tt.path {
			t.Errorf("%s %s: path %q", tt.method, tt.params, refused.Path)
		}
	}
	var refused *Error
	if err := c.call(testContext(t), MethodCancel, CancelParams{Ref: Ref{"another"}}, &Empty{}); !errors.As(err, &refused) || refused.Code != CodeSessionNotFound {
		t.Errorf("another session: %v", err)
	}
	if err := c.call(testContext(t), MethodCancel, CancelParams{Ref: Ref{o.id}}, &Empty{}); err != nil {
		t.Errorf("the session by its name: %v", err)
	}
}

type codedError struct{}

func (codedError) Error() string { return "the owner is leaving" }
func (codedError) Code() string  { return CodeOwnerLeaving }

func TestHostErrorsKeepTheirCode(t *testing.T) {
	o := serveHost(t, newHost())
	c := o.dial(t)
	for _, tt := range []struct {
		err  error
		code string
	}{
		{fmt.Errorf("refused: %w", codedError{}), CodeOwnerLeaving},
		{&Error{Code: "SESSION_BUSY", Message: "busy"}, "SESSION_BUSY"},
		{&question.Error{Code: question.CodeBadAnswer, Message: "bad"}, question.CodeBadAnswer},
		{errors.New("no space left on device"), CodeInternal},
	} {
		o.mu.Lock()
		o.fail = tt.err
		o.mu.Unlock()
		var refused *Error
		if _, err := c.Prompt(testContext(t), text("x")); !errors.As(err, &refused) || refused.Code != tt.code {
			t.Errorf("%v arrived as %v", tt.err, err)
		}
	}
}

func TestAPanicOfTheHostIsAnError(t *testing.T) {
	h := newHost()
	o := serveHost(t, h)
	c := o.dial(t)
	var refused *Error
	if _, err := c.Prompt(testContext(t), text("panic")); !errors.As(err, &refused) || refused.Code != CodeInternal {
		t.Errorf("got %v", err)
	}
	if err := c.Ping(testContext(t)); err != nil {
		t.Errorf("the connection did not outlive it: %v", err)
	}
}

func TestClaimAnswersTheWait(t *testing.T) {
	o := serveHost(t, newHost())
	w := o.open("c1", question.KindQuestion, 29*time.Second)
	a, b := o.dial(t).Desk("c1"), o.dial(t).Desk("c1")
	ctx := testContext(t)
	for _, d := range []*Desk{a, b} {
		remaining, timed, err := d.Attach(ctx)
		if remaining != 29*time.Second || !timed || err != nil {
			t.Fatalf("attach: %v %v %v", remaining, timed, err)
		}
	}
	if w.held() != 2 {
		t.Fatalf("%d claims", w.held())
	}
	if ok, err := a.Respond(ctx, []session.Answer{{ID: "q", Selected: []string{"x"}}}); !ok || err != nil {
		t.Fatalf("respond: %v %v", ok, err)
	}
	if e := <-a.Ended(); e.Outcome != question.Answered || !e.Mine {
		t.Errorf("the winner is told %+v", e)
	}
	if e := <-b.Ended(); e.Outcome != question.Answered || e.Mine {
		t.Errorf("the loser is told %+v", e)
	}
	// The loser still holds what was a claim: it lost, it is not without one.
	if ok, err := b.Respond(ctx, []session.Answer{{ID: "q", Selected: []string{"x"}}}); ok || err != nil {
		t.Errorf("the loser's answer: %v %v", ok, err)
	}
	if _, _, err := o.dial(t).Desk("c1").Attach(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("attach after the end: %v", err)
	}
}

// JSON has one kind of number: how a whole one is written does not count.
func TestWholeNumbersAreReadAsTheyAreMeant(t *testing.T) {
	h := newHost()
	for range 5 {
		h.log(session.TypeTurnStart, session.TurnStart{Turn: 1})
	}
	c := serveHost(t, h).dial(t)
	for from, want := range map[string]int{"3": 2, "3.0": 2, "3e0": 2, "0.3e1": 2, "-0": 5, "0.0": 5} {
		var r ReadResult
		if err := c.call(testContext(t), MethodRead, json.RawMessage(`{"fromSeq":`+from+`}`), &r); err != nil || len(r.Events) != want {
			t.Errorf("from %s: %d events, %v", from, len(r.Events), err)
		}
	}
}

func TestATimeoutIsAWholeNumberToo(t *testing.T) {
	for text, want := range map[string]Whole{"1000": 1000, "1000.0": 1000, "1e3": 1000, "-1.0": -1} {
		var p InitializeParams
		if err := decodeParams(json.RawMessage(`{"cwd":"/","timeout":`+text+`}`), &p); err != nil || *p.Timeout != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// An empty batch is one that does not answer, not one that is missing.
func TestAnEmptyBatchReachesTheHost(t *testing.T) {
	o := serveHost(t, newHost())
	o.open("c1", question.KindQuestion, time.Minute)
	d := o.dial(t).Desk("c1")
	if _, _, err := d.Attach(testContext(t)); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if _, err := d.Respond(testContext(t), []session.Answer{}); !errors.As(err, &refused) || refused.Code != question.CodeBadAnswer {
		t.Errorf("respond: %v", err)
	}
}

// What a desk knows of its claim holds when it attaches again.
func TestADeskThatAttachesAgainKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		w := h.open("c1", question.KindQuestion, time.Minute)
		h.open("c2", question.KindLegacy, -1)
		conn, done := pipe(h, limits{line: 1 << 20, ahead: 1 << 20, queue: 1 << 20, stall: time.Second, flush: time.Second, page: 1 << 20})
		c := newClient(t.Context(), conn)
		d := c.Desk("c1")
		for _, want := range []time.Duration{time.Minute, 40 * time.Second, 20 * time.Second, 0, 0} {
			if left, timed, err := d.Attach(t.Context()); left != want || !timed || err != nil || w.held() != 1 {
				t.Errorf("%v %v %v, %d claims, want %v", left, timed, err, w.held(), want)
			}
			time.Sleep(20 * time.Second) // the bubble's clock
		}
		if err := d.Detach(t.Context()); err != nil || w.held() != 0 {
			t.Errorf("detach: %v, %d claims", err, w.held())
		}
		if left, _, err := d.Attach(t.Context()); left != time.Minute || err != nil { // as this host tells it
			t.Errorf("anew: %v %v", left, err)
		}
		d = c.Desk("c2")
		for range 2 {
			if left, timed, err := d.Attach(t.Context()); left >= 0 || timed || err != nil {
				t.Errorf("without a time: %v %v %v", left, timed, err)
			}
		}
		_ = c.Close()
		<-done
	})
}

func TestRejectAndDetach(t *testing.T) {
	o := serveHost(t, newHost())
	ctx := testContext(t)
	o.open("timed", question.KindQuestion, time.Second)
	d := o.dial(t).Desk("timed")
	if _, _, err := d.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	if ok, err := d.Reject(ctx, question.CodeTimedOut); !ok || err != nil {
		t.Errorf("reject: %v %v", ok, err)
	}
	if e := <-d.Ended(); e.Outcome != question.Pending || !e.Mine {
		t.Errorf("ended %+v", e)
	}

	w := o.open("blocking", question.KindLegacy, -1)
	d = o.dial(t).Desk("blocking")
	if remaining, timed, err := d.Attach(ctx); remaining >= 0 || timed || err != nil {
		t.Errorf("attach: %v %v %v", remaining, timed, err)
	}
	if err := d.Detach(ctx); err != nil || w.held() != 0 {
		t.Errorf("detach: %v, %d claims left", err, w.held())
	}
	var refused *Error
	if _, err := d.Respond(ctx, []session.Answer{}); !errors.As(err, &refused) {
		t.Errorf("respond: %v", err)
	}
	if _, err := d.Reject(ctx, question.CodeCancelled); !errors.As(err, &refused) || refused.Code != CodeNoClaim {
		t.Errorf("an outcome without a claim: %v", err)
	}
	if _, _, err := d.Attach(ctx); err != nil || w.held() != 1 {
		t.Errorf("attach again: %v, %d claims", err, w.held())
	}
}

func TestADroppedConnectionReleasesItsClaims(t *testing.T) {
	o := serveHost(t, newHost())
	w := o.open("c1", question.KindQuestion, time.Minute)
	c := o.dial(t)
	d := c.Desk("c1")
	if _, _, err := d.Attach(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim is released", func() bool { return w.held() == 0 })
	if _, ok := <-d.Ended(); ok {
		t.Error("a lost connection told how the wait ended")
	}
}

func TestApprovalsAreReadOnly(t *testing.T) {
	o := serveHost(t, newHost())
	w := o.open("c1", question.KindApproval, -1)
	var refused *Error
	if _, _, err := o.dial(t).Desk("c1").Attach(testContext(t)); !errors.As(err, &refused) || refused.Code != CodeReadOnlyWait {
		t.Errorf("attach: %v", err)
	}
	if w.held() != 0 {
		t.Error("a claim stayed")
	}
}

func TestApprovalsAreAnsweredWhereTheHostOffersThem(t *testing.T) {
	h := newHost()
	h.approvals = true
	o := serveHost(t, h)
	o.open("c1", question.KindPlanReview, -1)
	d := o.dial(t).Desk("c1")
	if _, _, err := d.Attach(testContext(t)); err != nil {
		t.Errorf("attach: %v", err)
	}
}

func TestSubscriberGetsEveryEventOnce(t *testing.T) {
	o := serveHost(t, newHost())
	big := strings.Repeat("x", 3<<10)
	for range 5 { // two pages
		o.log("session/title", map[string]string{"title": big})
	}
	c := o.dial(t)
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for i := range 200 {
			o.log("session/title", map[string]string{"title": fmt.Sprint(i, "<&>")})
		}
	}()
	next := int64(1)
	for next < 205 {
		n, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n.Event == nil {
			continue
		}
		o.mu.Lock()
		want := string(o.events[next])
		o.mu.Unlock()
		if n.Seq != next {
			t.Fatalf("event %d, want %d", n.Seq, next)
		}
		if string(n.Event) != want {
			t.Fatalf("event %s, want %s", n.Event, want)
		}
		next++
	}
	// A client that lists the questions now is served after the subscription began.
	if _, err := c.Questions(ctx); err != nil {
		t.Fatal(err)
	}
	reply, err := session.ReplyText("late", []session.Question{{ID: "q"}}, []session.Answer{{ID: "q", Selected: []string{"a"}}})
	if err != nil {
		t.Fatal(err)
	}
	o.log("user/message", session.NewUserMessage("m", reply, session.Source{Kind: session.SourceQuestionReply, CallID: "late"}))
	o.log("user/message", session.NewUserMessage("m2", reply, session.Source{Kind: session.SourceUser})) // pasted
	o.happen(question.Event{Type: question.Opened, Card: question.Card{CallID: "c1", Kind: question.KindQuestion, Timed: true, Questions: []session.Question{{ID: "q"}}}})
	o.happen(question.Event{Type: question.Closed, Card: question.Card{CallID: "c1"}, Outcome: question.Answered})
	o.happen(question.Event{Type: question.Closed, Card: question.Card{CallID: "c2"}, Outcome: question.Pending})
	seen := map[string]bool{}
	for len(seen) < 3 {
		n, err := sub.Next(ctx)
		switch {
		case err != nil:
			t.Fatal(err)
		case n.Request != nil:
			seen["request "+n.Request.CallID] = n.Request.Timed
		case n.Settled != nil:
			seen[fmt.Sprint("settled ", n.Settled.CallID, len(n.Settled.Answers))] = true
		}
	}
	for _, want := range []string{"request c1", "settled c10", "settled late1"} {
		if !seen[want] {
			t.Errorf("no %q in %v", want, seen)
		}
	}
	// What is on disk when the owner leaves still arrives, then the status, then the end.
	last := int64(-1)
	o.log("turn/end", session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndCompleted}})
	if err := o.l.Close(); err != nil {
		t.Fatal(err)
	}
	status := ""
	for {
		n, err := sub.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n.Event != nil {
			last = n.Seq
		}
		if n.Status != "" {
			status = n.Status
		}
	}
	if last != 207 || status != "idle" {
		t.Errorf("the last event was %d and the last status %q", last, status)
	}
}

func TestNothingIsToldBeforeItWasAskedFor(t *testing.T) {
	o := serveHost(t, newHost())
	for range 4 {
		o.log("session/title", map[string]string{"title": strings.Repeat("x", 3<<10)})
	}
	conn := o.raw(t)
	in := bufio.NewReaderSize(conn, 64<<10)
	ask := func(line string) string {
		t.Helper()
		if _, err := io.WriteString(conn, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	// The first page has more behind it, so there is nothing to follow yet.
	if a := ask(`{"jsonrpc":"2.0","id":1,"method":"session/read"}`); !strings.Contains(a, `"more":true`) {
		t.Fatalf("got %.100s", a)
	}
	o.log("session/title", map[string]string{"title": "y"})
	if a := ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`); strings.TrimSpace(a) != `{"jsonrpc":"2.0","id":"p","result":{}}` {
		t.Fatalf("got %.100s", a)
	}
	if a := ask(`{"jsonrpc":"2.0","id":2,"method":"session/read","params":{"fromSeq":2}}`); !strings.Contains(a, `"nextSeq":5,"more":false`) {
		t.Fatalf("got %.100s", a)
	}
	o.log("session/title", map[string]string{"title": "z"})
	for {
		note, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(note, NoteEvent) {
			if !strings.Contains(note, `"seq":5,`) {
				t.Fatalf("told %s", note)
			}
			return
		}
	}
}

func TestCloseAnswersWhatWasSentAndRemovesTheSocket(t *testing.T) {
	h := newHost()
	h.hold = make(chan struct{})
	o := serveHost(t, h)
	conn := o.raw(t)
	if _, err := io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"contentBlocks":[{"type":"text","text":"a"}]}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	<-h.held
	if _, err := io.WriteString(conn, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- o.l.Close() }()
	eventually(t, "the socket is removed", func() bool { _, err := os.Lstat(o.l.Path()); return err != nil })
	if _, err := io.WriteString(conn, "{}\n"); err == nil {
		eventually(t, "no more is taken", func() bool { _, err := io.WriteString(conn, "{}\n"); return err != nil })
	}
	close(h.hold)
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(all); !strings.Contains(s, `"id":1,"result":{"sessionId"`) || !strings.Contains(s, `"id":2,"result":{}`) {
		t.Errorf("answered %s", s)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestARequestOfAClientThatLeftIsDropped(t *testing.T) {
	h := newHost()
	h.hold = make(chan struct{})
	o := serveHost(t, h)
	conn := o.raw(t)
	prompt := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"contentBlocks":[{"type":"text","text":"%d"}]}}` + "\n"
	if _, err := fmt.Fprintf(conn, prompt+prompt, 1, 1, 2, 2); err != nil {
		t.Fatal(err)
	}
	<-h.held
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	close(h.hold)
	if err := o.l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(h.recorded(), ";"); got != "prompt 1" {
		t.Errorf("the host was asked for %q", got)
	}
}

func TestWhatWasSentBeforeAHalfCloseIsAnswered(t *testing.T) {
	o := serveHost(t, newHost())
	conn := o.raw(t)
	for i := range 50 {
		if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%d,"method":"session/steer","params":{"contentBlocks":[{"type":"text","text":"%d"}]}}`+"\n", i+1, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(all)), "\n") {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"messageId":"s-%d"}}`, i+1, i); line != want {
			t.Fatalf("answer %d is %s, want %s", i, line, want)
		}
	}
	if got := o.recorded(); len(got) != 50 || got[49] != "steer 49" {
		t.Errorf("the host was asked for %v", got)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	noLeak(t)
	h := newHost()
	h.hold = make(chan struct{})
	l, err := Listen(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, h, Options{}) }()
	c, err := Dial(testContext(t), l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	failed := make(chan error, 1)
	go func() { _, err := c.Prompt(testContext(t), text("x")); failed <- err }()
	<-h.held
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-failed; err == nil {
		t.Error("the request in hand was answered")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// An owner that leaves is there until it has gone: who asks for a sign of life
// gets one, and who wants something is told.
func TestAnOwnerThatLeavesRefusesClientsAndIsThere(t *testing.T) {
	h := newHost()
	h.hold = make(chan struct{})
	o := serveHost(t, h)
	c := o.dial(t)
	answered := make(chan error, 1)
	go func() { _, err := c.Prompt(testContext(t), text("x")); answered <- err }()
	<-h.held
	left := make(chan struct{})
	go func() { defer close(left); o.l.Leave() }()
	var refused *Error
	eventually(t, "new clients are refused", func() bool {
		late, err := Dial(testContext(t), o.l.Path())
		if err == nil {
			_ = late.Close()
		}
		return errors.As(err, &refused) && refused.Code == CodeOwnerLeaving
	})
	select {
	case <-left:
		t.Error("it left before what was sent was answered")
	default:
	}
	close(h.hold)
	if err := <-answered; err != nil {
		t.Errorf("what was sent before: %v", err)
	}
	<-left
	<-c.Done()
	for range 200 {
		if !Probe(testContext(t), o.l.Path()) {
			t.Fatal("no sign of life before the socket is closed")
		}
	}
	if err := o.l.Close(); err != nil {
		t.Error(err)
	}
	if Probe(testContext(t), o.l.Path()) {
		t.Error("a sign of life of nobody")
	}
}

func TestTooManyClientsAreRefused(t *testing.T) {
	o := serveHost(t, newHost())
	for range maxClients {
		o.raw(t)
	}
	var refused *Error
	if _, err := Dial(testContext(t), o.l.Path()); !errors.As(err, &refused) || refused.Code != CodeTooManyClients {
		t.Errorf("got %v", err)
	}
}
