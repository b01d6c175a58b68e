package acp_test

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestCancelRightBehindThePromptAnswersItOnceAsCancelled(t *testing.T) {
	s := newWorld(t, "responses: [{text: late, delay_ms: 20000}, {text: second}]").start()
	id := s.begun()
	s.send(prompt(3, id, "go"), cancel(id), cancel(id))
	s.answer(3).stop(t, "cancelled")
	s.send(prompt(4, id, "again"), cancel(id))
	s.answer(4).stop(t, "cancelled")
	s.end()
	for _, n := range []int{3, 4} {
		if got := s.answers(n); got != 1 {
			t.Errorf("prompt %d has %d answers", n, got)
		}
	}
}

func TestCancelWhileTheModelAnswers(t *testing.T) {
	s := newWorld(t, "responses: [{tool_calls: [{name: bash, arguments: {command: 'echo begun; sleep 60'}}]}, {text: after}]").start("--permission", "full-access")
	id := s.prompted()
	s.update(`"in_progress"`)
	s.send(cancel(id))
	s.update(`"failed"`)
	s.answer(3).stop(t, "cancelled")
	s.send(prompt(4, id, "go on"))
	s.update("after")
	s.answer(4).stop(t, "end_turn")
	s.end()
	if n := strings.Count(s.log(id), `"kind":"aborted","reason":{"kind":"user"}`); n != 1 {
		t.Errorf("%d turns are logged as aborted by the user, want 1", n)
	}
}

func TestSecondPromptIsRefusedAndTheFirstIsNotDisturbed(t *testing.T) {
	s := newWorld(t, "responses: [{text: first, delay_ms: 300}]").start()
	id := s.begun()
	s.send(prompt(3, id, "one"), prompt(4, id, "two"))
	m := s.answer(4)
	if m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("the second prompt: %s %+v, want invalid params", m.Result, m.Error)
	}
	s.update("first")
	s.answer(3).stop(t, "end_turn")
	s.end()
	if strings.Contains(s.log(id), `"two"`) {
		t.Error("the refused prompt is in the log")
	}
}

func TestEveryUpdateComesBeforeTheAnswer(t *testing.T) {
	s := newWorld(t, "responses: [{reasoning: thought, text: "+strings.Repeat("word ", 200)+"end}]").start()
	s.prompted()
	s.answer(3).stop(t, "end_turn")
	s.mu.Lock()
	var text strings.Builder
	for _, m := range s.said {
		if strings.Contains(string(m.Params), "agent_message_chunk") {
			_, rest, _ := strings.Cut(string(m.Params), `"text":"`)
			part, _, _ := strings.Cut(rest, `","type"`)
			text.WriteString(part)
		}
	}
	s.mu.Unlock()
	if want := strings.Repeat("word ", 200) + "end"; text.String() != want {
		t.Errorf("told before the answer: %q", text.String())
	}
	s.end()
}

func TestModelErrorRejectsThePromptAndTheSessionGoesOn(t *testing.T) {
	s := newWorld(t, "responses: [{error: {code: AUTH, message: the key is refused}}]").start()
	id := s.begun()
	rejected := 0
	for n := 3; rejected < 2; n++ {
		s.send(prompt(n, id, "go"))
		switch m := s.answer(n); {
		case m.Error != nil && m.Error.Code == -32602 && rejected > 0: // the agent is not idle yet
		case m.Error != nil && strings.Contains(m.Error.Message, "AUTH: the key is refused") && strings.Contains(string(m.Error.Data), `"code":"AUTH"`):
			rejected++
		default:
			t.Fatalf("the prompt: %s %+v", m.Result, m.Error)
		}
	}
	s.end()
}

func TestTokenLimitIsTheEndOfATurn(t *testing.T) {
	s := newWorld(t, "responses: [{text: cut, finish: length}]").start()
	s.prompted()
	s.update("token limit")
	s.answer(3).stop(t, "end_turn")
	s.end()
}

func TestLimitOfStepsIsTheEndOfATurn(t *testing.T) {
	s := newWorld(t, "responses: [{tool_calls: [{name: glob, arguments: {pattern: '*'}}]}, {text: more}]").start("--max-steps", "1")
	s.prompted()
	s.update("limit of steps")
	s.answer(3).stop(t, "end_turn")
	s.end()
}

func TestDisconnectCancelsThePromptAndLeavesASoundSession(t *testing.T) {
	w := newWorld(t, "responses: [{text: late, delay_ms: 60000}]")
	s := w.start()
	id := s.prompted()
	s.hangUp()
	if code, out, errs := w.command("sessions", "check", id); code != 0 {
		t.Errorf("check: %d %s %s", code, out, errs)
	}
}

func TestASessionWithoutAPromptLeavesNoFile(t *testing.T) {
	w := newWorld(t, "responses: []")
	s := w.start()
	id := s.begun()
	s.send(cancel(id), request(3, "session/set_mode", `{"sessionId":"`+id+`","modeId":"read-only"}`))
	s.answer(3)
	s.end()
	if _, out, _ := w.command("sessions", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("sessions: %s", out)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	w := newWorld(t, question)
	round := func() {
		s := w.start(timed(600)...)
		s.prompted()
		s.asks()
		s.hangUp()
	}
	round()
	before := runtime.NumGoroutine()
	for range 3 {
		round()
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			var stacks [64 << 10]byte
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks[:], true)])
		}
	}
}
