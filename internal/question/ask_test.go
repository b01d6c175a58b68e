package question

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

// Each row breaks one rule and all that come after it: the first is named.
func TestChecksInTheirOrder(t *testing.T) {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	bad := []session.Question{{ID: "a", Question: " "}}
	plan := []session.Question{{ID: "plan", Question: "Go?", Detail: "1. do", Options: []session.Option{{Label: "yes"}, {Label: "no"}}}}
	live := Caller{Live: true}
	approve := &Intent{Kind: "plan-review", Approve: "yes"}
	detail := func(d string) []session.Question {
		q := slices.Clone(plan)
		q[0].Detail = d
		return q
	}
	tests := []struct {
		name string
		ctx  context.Context
		r    Request
		wait time.Duration // 0: Ask
		want string
	}{
		{"aborted", gone, Request{}, -1, CodeAborted},
		{"no questions", nil, Request{}, -1, CodeEmptyQuestions},
		{"no wait", nil, Request{Questions: bad}, -1, CodeBadTimeout},
		{"too long a wait", nil, Request{Questions: bad}, (MaxWait + 1) * time.Second, CodeBadTimeout},
		{"bad questions", nil, Request{Questions: bad}, time.Second, CodeBadQuestions},
		{"not live", nil, Request{Questions: plan, Caller: Caller{Delegated: true}, Intent: &Intent{}}, 0, CodeCallerNotLive},
		{"delegated", nil, Request{Questions: plan, Caller: Caller{Live: true, Delegated: true}, Intent: &Intent{}}, 0, CodeDelegated},
		{"intent of a question", nil, Request{Questions: plan, Caller: live, Intent: approve, CallID: "dup"}, 0, CodeBadIntent},
		{"plan without intent", nil, Request{Kind: KindPlanReview, Questions: plan, Caller: live, CallID: "dup"}, 0, CodeBadIntent},
		{"intent of another kind", nil, Request{Kind: KindPlanReview, Questions: plan, Caller: live, Intent: &Intent{"x", "yes"}}, 0, CodeBadIntent},
		{"approve is no label", nil, Request{Kind: KindPlanReview, Questions: plan, Caller: live, Intent: &Intent{"plan-review", "Yes"}}, 0, CodeBadIntent},
		{"no plan", nil, Request{Kind: KindPlanReview, Questions: detail("\n "), Caller: live, Intent: approve}, 0, CodeBadIntent},
		{"two questions", nil, Request{Kind: KindPlanReview, Questions: append(dbQuestions(), plan...), Caller: live, Intent: approve}, 0, CodeBadIntent},
		{"a plan by time", nil, Request{Kind: KindPlanReview, Questions: plan, Caller: live, Intent: approve}, time.Second, CodeBadIntent},
		{"an approval by time", nil, Request{Kind: KindApproval, Questions: plan, Caller: live}, time.Second, CodeBadIntent},
		{"the same call", nil, Request{Questions: plan, Caller: live, CallID: "dup"}, time.Second, CodeDuplicateWait},
		{"the same call, nobody to ask", nil, Request{Questions: plan, Caller: live, CallID: "dup"}, 0, CodeDuplicateWait},
		{"nobody to ask", nil, Request{Kind: KindPlanReview, Questions: plan, Caller: live, Intent: approve, CallID: "new"}, 0, CodeNoProvider},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go s.AskTimed(ctx, request("dup", KindQuestion), time.Hour)
				synctest.Wait()
				defer s.Watch(func(e Event) {
					if e.Type == Opened {
						t.Error("something was drawn")
					}
				})()
				if tt.ctx != nil {
					ctx = tt.ctx
				}
				tt.r.Commit = func(Outcome) error { t.Error("committed without a wait"); return nil }
				o := s.Ask(ctx, tt.r)
				if tt.wait != 0 {
					o = s.AskTimed(ctx, tt.r, tt.wait)
				}
				if o.Err == nil || o.Err.Code != tt.want {
					t.Errorf("got %+v, want %s", o.Err, tt.want)
				}
			})
		})
	}
}

func TestWithoutALiveAgent(t *testing.T) {
	s := New("session", SystemClock{})
	if o := s.AskTimed(t.Context(), request("c", KindQuestion), time.Second); o.Err == nil || o.Err.Code != CodeCallerNotLive {
		t.Errorf("ask: %+v", o)
	}
	if _, err := s.Answer(t.Context(), "c", nil); code(err) != CodeCallerNotLive {
		t.Errorf("answer: %v", err)
	}
	if _, err := s.Withdraw(t.Context(), "c"); code(err) != CodeCallerNotLive {
		t.Errorf("withdraw: %v", err)
	}
	if _, _, ok := s.State("c"); ok {
		t.Error("a state")
	}
}

func TestAskingAgain(t *testing.T) {
	tests := []struct {
		name    string
		setup   func(*fakeRoot) // the call that asks is "b"
		bounded bool
		want    string // the call that asked before
	}{
		{"an earlier message", func(r *fakeRoot) {
			r.call("a", dbArgs)
			r.result("a", "", CodeAborted)
			r.message()
		}, true, "a"},
		{"the same message", func(r *fakeRoot) {
			r.call("a", dbArgs)
			r.result("a", "", CodeAborted)
		}, true, ""},
		{"a wait without end", func(r *fakeRoot) {
			r.call("a", dbArgs)
			r.result("a", "", CodeAborted)
			r.message()
		}, false, ""},
		{"removed meanwhile", func(r *fakeRoot) {
			r.call("a", dbArgs)
			r.result("a", "", CodeCancelled)
			r.message()
		}, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root, s := newRoot(t), New("session", SystemClock{})
				s.Bind(root)
				defer s.Provide(everybody)()
				root.header(askTimedSchema)
				root.message()
				tt.setup(root)
				root.call("b", dbArgs)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var o Outcome
				if tt.bounded {
					o = s.AskTimed(ctx, request("b", KindQuestion), time.Second)
				} else {
					o = s.Ask(ctx, request("b", KindQuestion))
				}
				if o.DuplicateOf != tt.want {
					t.Errorf("%+v, want %q", o, tt.want)
				}
			})
		})
	}
}

func TestProvidersOfferByCard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		withdraw := s.Provide(func(c Card) bool { return c.Kind == KindLegacy })
		if o := s.Ask(t.Context(), request("c", KindApproval)); o.Err == nil || o.Err.Code != CodeNoProvider {
			t.Errorf("%+v", o)
		}
		var o Outcome
		go func() { o = s.Ask(t.Context(), request("d", KindLegacy)) }()
		synctest.Wait()
		if w := s.Waits(); len(w) != 1 || w[0].CallID != "d" || w[0].Timed || w[0].Remaining >= 0 || w[0].SessionID != "session" {
			t.Errorf("%+v", w)
		}
		other := s.Provide(everybody)
		withdraw()
		synctest.Wait()
		if len(s.Waits()) != 1 {
			t.Error("ended though somebody else offers")
		}
		other()
		synctest.Wait()
		if o.Err == nil || o.Err.Code != CodeNoProvider {
			t.Errorf("%+v", o)
		}
		empty(t, s)
	})
}

func TestApprovalTakesWordsBesideItsLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		defer s.Provide(everybody)()
		done := make(chan Outcome)
		for _, kind := range []Kind{KindApproval, KindLegacy} {
			go func() { done <- s.Ask(t.Context(), request("c", kind)) }()
			synctest.Wait()
			c, _ := s.Attach("c")
			batch := pick("lite")
			batch[0].Custom = "too big"
			if ok, err := c.Respond(t.Context(), batch); ok != (kind == KindApproval) {
				t.Errorf("%s: %v, %v", kind, ok, err)
			} else if !ok {
				if _, err := c.Respond(t.Context(), pick("lite")); err != nil {
					t.Error(err)
				}
			}
			<-done
		}
	})
}

// Every watcher hears of a wait before its time can pass, and hears of all
// waits in one order: opened before ended.
func TestWatchersHearInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		var mu sync.Mutex
		heard := map[string][]string{}
		stop := s.Watch(func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			heard[e.Card.CallID] = append(heard[e.Card.CallID], e.Type+e.Outcome)
		})
		// A watcher that attaches and answers from where it is told.
		defer s.Watch(func(e Event) {
			if e.Type == Opened && strings.HasPrefix(e.Card.CallID, "answer") {
				c, ok := s.Attach(e.Card.CallID)
				if !ok {
					t.Error("no claim on a wait that opens")
					return
				}
				if _, err := c.Respond(t.Context(), pick("pg")); err != nil {
					t.Error(err)
				}
			}
		})()
		var wg sync.WaitGroup
		for i := range 40 {
			name := []string{"answer", "expire"}[i%2]
			wg.Go(func() { s.AskTimed(t.Context(), request(fmt.Sprint(name, i), KindQuestion), time.Second) })
		}
		wg.Wait()
		synctest.Wait()
		for i := range 40 {
			name, end := "answer", Answered
			if i%2 == 1 {
				name, end = "expire", Pending
			}
			id := fmt.Sprint(name, i)
			if got := heard[id]; !slices.Equal(got, []string{Opened, Closed + end}) {
				t.Errorf("%s: %v", id, got)
			}
		}
		stop()
		s.AskTimed(t.Context(), request("after", KindQuestion), time.Second)
		if heard["after"] != nil {
			t.Error("told after stop")
		}
		empty(t, s)
	})
}

// A watcher that is slow costs time, but not the chance to attach.
func TestOpenedComesBeforeExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		claims := make(chan *Claim, 1)
		defer s.Watch(func(e Event) {
			if e.Type == Opened {
				time.Sleep(time.Minute)
				c, _ := s.Attach("c")
				claims <- c
			}
		})()
		go func() {
			c := <-claims
			time.Sleep(time.Minute)
			if _, err := c.Respond(t.Context(), pick("pg")); err != nil {
				t.Error(err)
			}
		}()
		if o := s.AskTimed(t.Context(), request("c", KindQuestion), time.Second); o.word() != Answered {
			t.Errorf("%+v", o)
		}
	})
}

func TestAnswersComeInTheOrderOfTheQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t)
		r := request("c", KindQuestion)
		r.Questions = append(r.Questions, session.Question{ID: "why", Question: "Why?"})
		var o Outcome
		go func() { o = s.AskTimed(t.Context(), r, time.Hour) }()
		synctest.Wait()
		c, _ := s.Attach("c")
		if _, err := c.Respond(t.Context(), []session.Answer{{ID: "why"}, {ID: "db", Selected: []string{"pg"}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if text, _ := session.BatchText(o.Answers); text != `{"answers":[{"id":"db","selected":["pg"]},{"id":"why","selected":[]}]}` {
			t.Error(text)
		}
	})
}

// Of several requests of one call at the same instant one waits, the others are refused.
func TestSameCallAtTheSameInstant(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			s := newService(t)
			var wg sync.WaitGroup
			var mu sync.Mutex
			got := map[string]int{}
			for range 6 {
				wg.Go(func() {
					o := s.AskTimed(t.Context(), request("c", KindQuestion), time.Second)
					mu.Lock()
					defer mu.Unlock()
					if o.Err != nil {
						got[o.Err.Code]++
					} else {
						got[o.word()]++
					}
				})
			}
			wg.Wait()
			if got[Pending] != 1 || got[CodeDuplicateWait] != 5 {
				t.Fatalf("%v", got)
			}
			empty(t, s)
		})
	}
}

// TestACancelledCallPromisesAnAnswerOnlyWhereOneCanCome: the word of the call and
// the fold of its log say the same.
func TestACancelledCallPromisesAnAnswerOnlyWhereOneCanCome(t *testing.T) {
	live := Caller{Live: true}
	for _, tt := range []struct {
		name   string
		kind   Kind
		caller Caller
		qs     []session.Question
		want   bool
	}{
		{"a timed question", KindQuestion, live, dbQuestions(), true},
		{"a legacy one", KindLegacy, live, dbQuestions(), false},
		{"an approval", KindApproval, live, dbQuestions(), false},
		{"a sub-agent's", KindQuestion, Caller{Live: true, Delegated: true}, dbQuestions(), false},
		{"one that would have been refused", KindQuestion, live, append(dbQuestions(), dbQuestions()...), false},
		{"none", KindQuestion, live, nil, false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := newService(t)
		o := s.Ask(ctx, Request{CallID: "c9", Kind: tt.kind, Caller: tt.caller, Questions: tt.qs})
		if o.Err == nil || o.Err.Code != CodeAborted || strings.Contains(o.Err.Message, "callId c9") != tt.want {
			t.Errorf("%s: %v", tt.name, o.Err)
		}
	}
}

// TestACardThatPermitsTakesNoWordsAlone: they would be lost, or taken for a yes.
func TestACardThatPermitsTakesNoWordsAlone(t *testing.T) {
	qs := []session.Question{{ID: "plan", Question: "Go?", Options: []session.Option{{Label: "approve"}, {Label: "no, because"}}}}
	answer := func(custom string, selected ...string) []session.Answer {
		return []session.Answer{{ID: "plan", Selected: selected, Custom: custom}}
	}
	for _, kind := range []Kind{KindPlanReview, KindApproval} {
		for _, words := range []string{"use z instead", "approve", " approve "} {
			e := CheckAnswers(kind, qs, answer(words))
			if e == nil || e.Code != CodeBadAnswer || !strings.Contains(e.Message, `"no, because"`) {
				t.Errorf("%s, %q: %v", kind, words, e)
			}
		}
		for _, batch := range [][]session.Answer{answer("use z", "no, because"), answer("", "approve"), answer(""), answer(" ")} {
			if e := CheckAnswers(kind, qs, batch); e != nil {
				t.Errorf("%s, %v: %v", kind, batch, e)
			}
		}
	}
	if e := CheckAnswers(KindLegacy, qs, answer("words")); e != nil {
		t.Errorf("a question takes words alone: %v", e)
	}
}
