package remote

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

const newPrompt = `{"contentBlocks":[{"type":"text","text":"go"}]}`

func oldPrompt(id string) string {
	return fmt.Sprintf(`{"sessionId":%q,"contentBlocks":[{"type":"text","text":"go"}]}`, id)
}

func TestInitializeComesFirstAndOnce(t *testing.T) {
	p := serveBackend(t, newBackend(), stdioLimits)
	for _, method := range []string{MethodPing, MethodPrompt, MethodShutdown, "nonsense"} {
		if _, code := p.call(method, `{}`); code != CodeNotInitialized {
			t.Errorf("%s before initialize: %s", method, code)
		}
	}
	for params, want := range map[string]string{
		`{}`: "INVALID_PARAMS cwd", `{"cwd":"/nowhere"}`: "INVALID_PARAMS cwd", `{"cwd":"/","timeout":"5"}`: "INVALID_PARAMS timeout",
		`{"cwd":"/","capabilities":{"x":true}}`: "INVALID_PARAMS capabilities.x",
		`{"cwd":""}`:                            "INVALID_PARAMS cwd",
		`{"cwd":"/","model":""}`:                "INVALID_PARAMS model",
		`{"cwd":"/","permission":""}`:           "INVALID_PARAMS permission",
	} {
		if _, code := p.call(MethodInitialize, params); code != want {
			t.Errorf("initialize %s: %s, want %s", params, code, want)
		}
	}
	res, _ := p.call(MethodInitialize, `{"cwd":"/","capabilities":{"approvals":true}}`)
	if want := `{"serverInfo":{"name":"deepseek","version":"1.2.3"},"protocolVersion":1,"capabilities":{"questions":true,"approvals":true}}`; res != want {
		t.Errorf("got  %s\nwant %s", res, want)
	}
	if _, code := p.call(MethodInitialize, `{"cwd":"/"}`); code != CodeAlreadyInitialized {
		t.Errorf("again: %s", code)
	}
	if _, code := p.call("nonsense", `{}`); code != CodeMethodNotFound {
		t.Errorf("unknown method: %s", code)
	}
	if res, _ := p.call(MethodPing, `{}`); res != `{}` {
		t.Errorf("ping: %s", res)
	}
}

func TestTheAnswerToAPromptComesBeforeWhatItStarts(t *testing.T) {
	b := newBackend()
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	res, _ := p.call(MethodPrompt, newPrompt)
	if want := `{"sessionId":"new-0","messageId":"m-go"}`; res != want {
		t.Errorf("got %s, want %s", res, want)
	}
	if len(p.seen) != 0 {
		t.Errorf("before the answer: %s", words(p.seen))
	}
	if res, _ := p.call(MethodPrompt, newPrompt); res != `{"sessionId":"new-1","messageId":"m-go"}` {
		t.Errorf("a second session: %s", res)
	}
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	all := words(p.rest())
	for _, id := range []string{"new-0", "new-1"} {
		var own []string
		for _, w := range strings.Split(all, "; ") {
			if strings.HasPrefix(w, id) {
				own = append(own, strings.TrimPrefix(w, id+" "))
			}
		}
		want := "status running; event 0 agent/inbox/spliced; event 1 turn/start; event 2 turn/end; status idle"
		if got := strings.Join(own, "; "); got != want {
			t.Errorf("%s was told\n%s, want\n%s", id, got, want)
		}
	}
	if err := p.ended(); err != nil || b.open() != 0 || b.cause != session.CauseDisposed {
		t.Errorf("end: %v, %d sessions open, cause %q", err, b.open(), b.cause)
	}
}

func TestSessionsThatAreNotOpenHere(t *testing.T) {
	b := newBackend()
	old := b.add("old", 3)
	b.add("busy", 1)
	b.elses["busy"] = true
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	ref := func(id, rest string) string { return fmt.Sprintf(`{"sessionId":%q%s}`, id, rest) }
	answers := `,"callId":"c","answers":[]`
	for _, tt := range []struct{ method, params, result, code string }{
		{MethodPrompt, oldPrompt("none"), "", CodeSessionNotFound},
		{MethodPrompt, oldPrompt("busy"), "", CodeSessionBusy},
		{MethodSteer, newPrompt, "", "INVALID_PARAMS sessionId"},
		{MethodPrompt, oldPrompt(""), "", "INVALID_PARAMS sessionId"}, // and begins no session
		{MethodRead, ref("", ""), "", "INVALID_PARAMS sessionId"},
		{MethodSteer, oldPrompt("busy"), "", CodeSessionBusy},
		{MethodCancel, ref("old", ""), "", CodeSessionNotOpen},
		{MethodCancel, ref("busy", ""), "", CodeSessionBusy},
		{MethodClose, ref("old", ""), `{}`, ""},
		{MethodClose, ref("busy", ""), "", CodeSessionBusy},
		{MethodClose, ref("none", ""), "", CodeSessionNotFound},
		{MethodRead, ref("old", `,"fromSeq":2`), `"nextSeq":3,"more":false}`, ""},
		{MethodQuestions, ref("old", ""), `"callId":"dead"`, ""},
		{MethodAttach, ref("old", `,"callId":"c"`), `{"attached":false}`, ""},
		{MethodAttach, ref("none", `,"callId":"c"`), "", CodeSessionNotFound},
		{MethodDetach, ref("old", `,"callId":"c"`), `{}`, ""},
		{MethodRespond, ref("old", answers), "", CodeNoClaim},
		{MethodAnswer, ref("busy", answers), "", CodeSessionBusy},
		{MethodSessions, `{}`, `{"sessions":["row"]}`, ""},
		{MethodPrompt, `{"contentBlocks":[{"type":"text","text":"no key"}]}`, "", "CONFIG"},
	} {
		res, code := p.call(tt.method, tt.params)
		if code != tt.code || !strings.HasSuffix(res, tt.result) && !strings.Contains(res, tt.result) {
			t.Errorf("%s %s: %s %s, want %s %s", tt.method, tt.params, res, code, tt.result, tt.code)
		}
	}
	if b.open() != 0 || len(p.seen) != 0 {
		t.Fatalf("%d sessions are open, told %s", b.open(), words(p.seen))
	}

	// A request that changes nothing does not keep the session it was taken for.
	if _, code := p.call(MethodWithdraw, ref("old", `,"callId":"c"`)); code != "" || b.open() != 0 {
		t.Errorf("withdraw: %s, %d open", code, b.open())
	}
	if _, code := p.call(MethodAnswer, ref("old", `,"callId":"queued","answers":[]`)); code != question.CodeReplyQueued || b.open() != 0 {
		t.Errorf("answer: %s, %d open", code, b.open())
	}
	first := len(old.events)
	if res, _ := p.call(MethodAnswer, ref("old", answers)); res != `{"accepted":true}` || b.open() != 1 {
		t.Errorf("answer: %s, %d open", res, b.open())
	}
	p.seen = nil
	if res, _ := p.call(MethodClose, ref("old", "")); res != `{}` || b.open() != 0 {
		t.Errorf("close: %s, %d open", res, b.open())
	}
	if got, want := words(p.seen), fmt.Sprintf("old event %d turn/end; old status idle", first); !strings.HasSuffix(got, want) {
		t.Errorf("told before the answer to close: %s, want %s", got, want)
	}
}

func TestReadDoesNotMoveTheNotifications(t *testing.T) {
	b := newBackend()
	h := b.add("old", 3)
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	if _, code := p.call(MethodPrompt, oldPrompt("old")); code != "" {
		t.Fatal(code)
	}
	if res, _ := p.call(MethodRead, `{"sessionId":"old"}`); !strings.Contains(res, `"nextSeq":3`) {
		t.Errorf("read: %s", res)
	}
	h.log(session.TypeTurnStart, session.TurnStart{Turn: 2})
	if _, code := p.call(MethodShutdown, `{}`); code != "" {
		t.Fatal(code)
	}
	if got, want := words(p.rest()), "old status running; old event 3 turn/start; old event 4 turn/end; old status idle"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

func TestShutdownEndsTheServerAndRefusesWhatComesBehind(t *testing.T) {
	b := newBackend()
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	p.call(MethodPrompt, newPrompt)
	p.write(`{"jsonrpc":"2.0","id":"s","method":"shutdown"}` + "\n" + `{"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n")
	if m := p.answer(`"s"`); string(m.Result) != `{}` || b.open() != 0 {
		t.Errorf("shutdown: %s, %d open", m.Result, b.open())
	}
	// What was read is answered; whether the second line was depends on the pipe.
	for _, m := range p.rest() {
		if string(m.ID) == `"p"` && fromWire(m.Error).Code != CodeOwnerLeaving {
			t.Errorf("behind shutdown: %s", m.Error)
		}
	}
	if err := p.ended(); err != nil {
		t.Error(err)
	}
}

func TestWhatWasReadBeforeTheEndIsAnswered(t *testing.T) {
	p := serveBackend(t, newBackend(), stdioLimits)
	var all strings.Builder
	all.WriteString(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"cwd":"/"}}` + "\n")
	for i := 2; i < 50; i++ {
		fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":%s}`+"\n", i, newPrompt)
	}
	all.WriteString(`{"jsonrpc":"2.0","id":50,"method":"ping"}`) // no newline
	p.write(all.String())
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	next := 1
	for _, m := range p.rest() {
		if len(m.ID) > 0 {
			if string(m.ID) != fmt.Sprint(next) || m.Error != nil {
				t.Fatalf("answer %s: %v, want %d", m.ID, m.Error, next)
			}
			next++
		}
	}
	if next != 51 {
		t.Errorf("%d answers", next-1)
	}
	if err := p.ended(); err != nil {
		t.Error(err)
	}
}

func TestTheEndOfTheContextClosesTheTurnsAsTheUsers(t *testing.T) {
	b := newBackend()
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	p.call(MethodPrompt, newPrompt)
	p.stop()
	p.rest()
	if err := p.ended(); err != nil || b.cause != session.CauseUser || b.open() != 0 {
		t.Errorf("%v, cause %q, %d open", err, b.cause, b.open())
	}
}

func TestTheClientsOwnClaims(t *testing.T) {
	for _, approvals := range []bool{true, false} {
		t.Run(fmt.Sprintf("approvals %v", approvals), func(t *testing.T) {
			b := newBackend()
			var waits []*fakeWait
			b.setup = func(h *fakeHost) {
				waits = []*fakeWait{h.open("c1", question.KindQuestion, time.Minute), h.open("a1", question.KindApproval, -1)}
			}
			p := serveBackend(t, b, stdioLimits)
			if _, code := p.call(MethodInitialize, fmt.Sprintf(`{"cwd":"/","capabilities":{"questions":true,"approvals":%v}}`, approvals)); code != "" {
				t.Fatal(code)
			}
			p.call(MethodPrompt, newPrompt)
			call := func(id string) string { return fmt.Sprintf(`{"sessionId":"new-0","callId":%q`, id) }
			if res, _ := p.call(MethodAttach, call("c1")+`}`); res != `{"attached":true}` || waits[0].held() != 1 {
				t.Errorf("attach: %s, %d claims", res, waits[0].held())
			}
			_, code := p.call(MethodAttach, call("a1")+`}`)
			if want := map[bool]string{false: CodeReadOnlyWait}[approvals]; code != want {
				t.Errorf("attach to an approval: %s, want %s", code, want)
			}
			if res, _ := p.call(MethodRespond, call("c1")+`,"answers":[{"id":"q","selected":["a"]}]}`); res != `{"accepted":true}` {
				t.Errorf("respond: %s", res)
			}
			p.call(MethodClose, `{"sessionId":"new-0"}`)
			var ended, told bool
			for _, m := range p.seen {
				told = told || m.Method == NoteWait && strings.Contains(string(m.Params), `"callId":"c1","remainingMs":60000`)
				ended = ended || m.Method == NoteWaitEnded && strings.Contains(string(m.Params), `"outcome":"answered","mine":true`)
			}
			if !told || !ended || waits[1].held() != 0 {
				t.Errorf("wait told %v, end told %v, %d claims left", told, ended, waits[1].held())
			}
		})
	}
}

// A claim is one claim, and what is left of its wait is told once.
func TestAttachingAgainChangesNothing(t *testing.T) {
	b := newBackend()
	var w *fakeWait
	b.setup = func(h *fakeHost) { w = h.open("c1", question.KindQuestion, time.Minute) }
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	p.call(MethodPrompt, newPrompt)
	const call = `{"sessionId":"new-0","callId":"c1"`
	for range 3 {
		if res, _ := p.call(MethodAttach, call+`}`); res != `{"attached":true}` || w.held() != 1 {
			t.Errorf("attach: %s, %d claims", res, w.held())
		}
	}
	p.call(MethodRespond, call+`,"answers":[{"id":"q","selected":["a"]}]}`)
	// The end of the wait is told before it is known to whoever attaches behind it.
	for len(notes(p.seen, NoteWaitEnded)) == 0 {
		m, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		p.seen = append(p.seen, m)
	}
	if res, _ := p.call(MethodAttach, call+`}`); res != `{"attached":false}` {
		t.Errorf("attach to what has ended: %s", res)
	}
	if res, _ := p.call(MethodRespond, call+`,"answers":[{"id":"q","selected":["a"]}]}`); res != `{"accepted":false}` {
		t.Errorf("an answer that is too late: %s", res)
	}
	p.call(MethodClose, `{"sessionId":"new-0"}`)
	if n := len(notes(p.seen, NoteWait)); n != 1 {
		t.Errorf("what is left was told %d times", n)
	}
}

// notes are the notifications of a method.
func notes(list []message, method string) (out []message) {
	for _, m := range list {
		if m.Method == method {
			out = append(out, m)
		}
	}
	return out
}

// However long a request takes, the end of the input does not cut it short.
func TestASlowRequestAndWhatIsBehindItAreAnsweredAfterTheEnd(t *testing.T) {
	b := newBackend()
	b.listing, b.hold = make(chan struct{}), make(chan struct{})
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	p.write(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":` + newPrompt + "}\n" +
		`{"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}` + "\n" + `{"jsonrpc":"2.0","id":4,"method":"ping","params":{}}`)
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	<-b.listing
	close(b.hold)
	var got []string
	for _, m := range p.rest() {
		if len(m.ID) > 0 && m.Error == nil {
			got = append(got, string(m.ID))
		}
	}
	if strings.Join(got, " ") != "2 3 4" || p.ended() != nil || b.open() != 0 {
		t.Errorf("answered %v, %d open", got, b.open())
	}
}

// A signal does: the server has seconds to end.
func TestTheEndOfTheContextCutsASlowRequestShort(t *testing.T) {
	b := newBackend()
	b.listing, b.hold = make(chan struct{}), make(chan struct{})
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	p.write(`{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}` + "\n")
	<-b.listing
	p.stop()
	p.rest()
	if err := p.ended(); err != nil {
		t.Error(err)
	}
}

func TestASlowClientIsDroppedAndSlowsNobody(t *testing.T) {
	b := newBackend()
	lim := stdioLimits
	lim.queue, lim.stall, lim.flush = 64<<10, 50*time.Millisecond, 200*time.Millisecond
	p := serveBackend(t, b, lim)
	p.initialize()
	p.call(MethodPrompt, newPrompt)
	b.mu.Lock()
	h := b.owned["new-0"].fakeHost
	b.mu.Unlock()
	for range 3000 { // far more than the pipe and the queue hold; it returns at once
		h.log(session.TypeTitle, map[string]string{"title": strings.Repeat("x", 1000)})
	}
	var refused *Error
	if err := p.ended(); !errors.As(err, &refused) || refused.Code != CodeClientTooSlow || b.open() != 0 {
		t.Errorf("%v, %d open", err, b.open())
	}
}

func TestAFailureOfASessionIsTheServersError(t *testing.T) {
	b := newBackend()
	b.restErr = refuse("LOG_WRITE", "disk full")
	p := serveBackend(t, b, stdioLimits)
	p.initialize()
	p.call(MethodPrompt, newPrompt)
	if _, code := p.call(MethodClose, `{"sessionId":"new-0"}`); code != "LOG_WRITE" || b.open() != 0 {
		t.Errorf("close: %s, %d open", code, b.open())
	}
	p.call(MethodPrompt, newPrompt)
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	p.rest()
	if err := p.ended(); !errors.Is(err, b.restErr) || b.open() != 0 {
		t.Errorf("%v, %d open", err, b.open())
	}
}

// TestAnyLinesAreAnsweredOnce throws malformed, oversized, repeated and
// out-of-order lines at the server.
func TestAnyLinesAreAnsweredOnce(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for seed := range rounds {
		soup(t, uint64(seed), 80)
	}
}

func FuzzStdio(f *testing.F) {
	f.Add(uint64(1), 20)
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		if n < 0 || n > 500 {
			return
		}
		soup(t, seed, n)
	})
}

// soup sends n lines made from a seed, ends the input, and checks that every
// request with an id of its own was answered just once and nothing is left.
func soup(t *testing.T, seed uint64, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	b := newBackend()
	b.add("old", 5)
	b.add("busy", 1)
	b.elses["busy"] = true
	b.setup = func(h *fakeHost) { h.open("c1", question.KindQuestion, time.Minute) }
	lim := stdioLimits
	lim.line, lim.ahead = 4<<10, 8<<10
	p := serveBackend(t, b, lim)
	asked := map[string]bool{}
	var all strings.Builder
	for i := range n {
		line, id := soupLine(r, i)
		if id != "" {
			asked[id] = true
		}
		all.WriteString(line + "\n")
	}
	go func() {
		_, _ = p.in.WriteString(all.String()) // a server that has shut down takes no more
		_ = p.in.Close()
	}()
	over := false
	answered := map[string]bool{}
	for _, m := range p.rest() {
		id := string(m.ID)
		switch {
		case m.Method != "" || id == "null" || id == "":
			continue
		case !asked[id]:
			t.Errorf("seed %d: an answer to %s, which nobody asked", seed, id)
		case answered[id]:
			t.Errorf("seed %d: a second answer to %s", seed, id)
		}
		answered[id] = true
		over = over || strings.HasPrefix(id, `"shutdown`) && m.Error == nil
	}
	if err := p.ended(); err != nil || b.open() != 0 {
		t.Errorf("seed %d: %v, %d sessions open", seed, err, b.open())
	}
	for id := range asked {
		if !answered[id] && !over {
			t.Errorf("seed %d: no answer to %s", seed, id)
		}
	}
}

// soupLine is one line and, where it is a request that must be answered, its id.
func soupLine(r *rand.Rand, i int) (line, id string) {
	methods := []string{
		MethodInitialize, MethodPing, MethodSessions, MethodPrompt, MethodPrompt, MethodSteer, MethodCancel, MethodRead, MethodClose,
		MethodQuestions, MethodAttach, MethodAttach, MethodDetach, MethodRespond, MethodAnswer, MethodWithdraw, "rpc.cancel", "x",
	}
	sessions := []string{"", "new-2", "new-2", "new-3", "old", "busy", "none"}
	var params []string
	if s := sessions[r.IntN(len(sessions))]; s != "" {
		params = append(params, fmt.Sprintf(`"sessionId":%q`, s))
	}
	for _, more := range []string{
		`"cwd":"/"`, `"contentBlocks":[{"type":"text","text":"go"}]`, `"callId":"c1"`, `"answers":[{"id":"q","selected":["a"]}]`,
		`"fromSeq":1`, `"error":{"code":"ASK_TIMED_OUT"}`, `"keepInbox":true`, `"x":1`,
	} {
		if r.IntN(3) == 0 {
			params = append(params, more)
		}
	}
	method := methods[r.IntN(len(methods))]
	switch {
	case i == 0 || method == MethodInitialize:
		method, params = MethodInitialize, []string{`"cwd":"/"`}
	case r.IntN(3) > 0: // one that fits
		params = fitting(method, params)
	}
	text := fmt.Sprintf(`"jsonrpc":"2.0","method":%q,"params":{%s}`, method, strings.Join(params, ","))
	id = fmt.Sprint(1000 + i)
	switch r.IntN(16) {
	case 0:
		return "{" + text + "}", "" // a notification
	case 1:
		return `[{"id":1,` + text + "}]", ""
	case 2:
		return `{"id":` + id + "," + text, ""
	case 3:
		return `{"id":` + id + "," + text + `,"pad":"` + strings.Repeat("x", 5<<10) + `"}`, id
	case 4:
		return []string{"", "null", "5", `"x"`, "{}", "\xff", `{"id":{},` + text + "}", `{"jsonrpc":"2.0","id":7,"result":{}}`}[r.IntN(7)], ""
	case 5:
		if r.IntN(40) == 0 {
			id = fmt.Sprintf(`"shutdown %d"`, i)
			return `{"jsonrpc":"2.0","id":` + id + `,"method":"shutdown"}`, id
		}
	case 6:
		id = fmt.Sprintf("%q", id)
	}
	return `{"id":` + id + "," + text + "}", id
}

func fitting(method string, params []string) []string {
	ref := `"sessionId":"new-2"`
	call := `"callId":"c1"`
	text := `"contentBlocks":[{"type":"text","text":"go"}]`
	switch method {
	case MethodPrompt:
		return []string{text}
	case MethodSteer:
		return []string{ref, text}
	case MethodCancel, MethodRead, MethodClose, MethodQuestions:
		return []string{ref}
	case MethodAttach, MethodDetach, MethodWithdraw:
		return []string{ref, call}
	case MethodRespond, MethodAnswer:
		return []string{ref, call, `"answers":[{"id":"q","selected":["a"]}]`}
	}
	return params
}
