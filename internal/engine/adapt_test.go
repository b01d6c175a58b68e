package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// needs is an adaptation for each refusal that names one.
func needs(err error, have []string) (string, bool) {
	_, need, found := strings.Cut(err.Error(), "need ")
	if !found {
		return "", false
	}
	need, _, _ = strings.Cut(need, " ")
	return need, !slices.Contains(have, need)
}

func refuses(need string) answer {
	return fails(&model.Error{Code: model.CodeInvalidRequest, Message: "need " + need, Status: 400})
}

func adapting(o *Options) { o.Adapt = needs }

func TestARefusalIsAdaptedToOnceForTheSession(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{refuses("a"), says("one"), says("two")}}, adapting)
	if res, end := w.run("x"); end.Kind != session.EndCompleted || res.Steps != 1 {
		t.Fatalf("%+v", end)
	}
	w.wantTypes(6, `header context llm/retry session/settings llm/retry-started assistant/message step/end end(completed)`)
	if s := string(w.log.events[9].Data); s != `{"mode":"legacy","timeout":120,"permission":"workspace-write","approve":"ask","adaptations":["a"]}` {
		t.Errorf("settings %s", s)
	}
	if r := found[session.Retry](w, session.TypeLLMRetry, 0); r.Attempt != 1 || r.DelayMS != 0 || r.Error.Message != "need a" || r.Error.Status != 400 {
		t.Errorf("%+v", r)
	}
	w.run("y") // with settings of its own that know nothing of it
	for i, want := range []string{"[]", "[a]", "[a]"} {
		if got := fmt.Sprint(w.llm.reqs[i].Adaptations); got != want {
			t.Errorf("request %d goes with %s, want %s", i, got, want)
		}
	}
	r := start(t, newMemLog(w.log.events...), &play{next: []answer{says("three")}}, adapting)
	r.run("z")
	if got := fmt.Sprint(r.llm.reqs[0].Adaptations); got != "[a]" {
		t.Errorf("after a resume %s", got)
	}
}

func TestAServerThatContradictsItselfComesToAnEnd(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{refuses("a"), refuses("b"), refuses("a"), says("never")}}, adapting)
	_, end := w.run("x")
	if end.Kind != session.EndError || end.Error.Message != "need a" {
		t.Errorf("%+v", end)
	}
	if got := fmt.Sprint(w.llm.reqs[2].Adaptations); got != "[a b]" {
		t.Errorf("last request with %s", got)
	}
}

func TestAttemptsAreCountedThroughAnAdaptation(t *testing.T) {
	busy := fails(&model.Error{Code: model.CodeServer, Message: "busy", Status: 503})
	w := start(t, newMemLog(), &play{next: []answer{busy, refuses("a"), busy, says("done")}}, adapting)
	if _, end := w.run("x"); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	for i := range 3 {
		if r := found[session.Retry](w, session.TypeLLMRetry, i); r.Attempt != i+1 {
			t.Errorf("retry %d is of attempt %d", i, r.Attempt)
		}
		if r := found[session.RetryStarted](w, session.TypeLLMRetryStarted, i); r.Attempt != i+2 {
			t.Errorf("start %d is of attempt %d", i, r.Attempt)
		}
	}
}

func TestARefusalOfAnythingElseStands(t *testing.T) {
	for name, change := range map[string]func(*Options){"nobody adapts": nil, "it is about something else": adapting} {
		w := start(t, newMemLog(), &play{next: []answer{fails(&model.Error{Code: model.CodeInvalidRequest, Message: "no"}), says("never")}}, change)
		if _, end := w.run("x"); end.Kind != session.EndError {
			t.Errorf("%s: %+v", name, end)
		}
	}
}
