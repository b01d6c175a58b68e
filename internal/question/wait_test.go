package question

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bench drives one wait by words: "attach a", "detach a", "respond a",
// "timeout a", "close a" (as the client of that name), "sleep 5s", "cancel",
// "withdraw" (of the only provider). A word after "=" is what must come of it.
type bench struct {
	t        *testing.T
	s        *Service
	root     *fakeRoot
	begun    time.Time
	cancel   context.CancelFunc
	withdraw func()
	claims   map[string]*Claim
	outcome  Outcome
	ended    chan struct{}
	at       time.Duration // when the wait ended
	commits  []string
}

func newBench(t *testing.T, kind Kind, wait time.Duration, commit func(Outcome) error) *bench {
	b := &bench{t: t, root: newRoot(t), s: New("session", SystemClock{}), begun: time.Now(), claims: map[string]*Claim{}, ended: make(chan struct{})}
	b.s.Bind(b.root)
	b.withdraw = b.s.Provide(everybody)
	ctx, cancel := context.WithCancel(t.Context())
	b.cancel = cancel
	r := request("c", kind)
	r.Commit = func(o Outcome) error {
		b.commits = append(b.commits, o.word())
		if commit != nil {
			return commit(o)
		}
		return nil
	}
	go func() {
		defer close(b.ended)
		if wait > 0 {
			b.outcome = b.s.AskTimed(ctx, r, wait)
		} else {
			b.outcome = b.s.Ask(ctx, r)
		}
		b.at = time.Since(b.begun)
	}()
	synctest.Wait()
	return b
}

func (b *bench) do(step string) {
	b.t.Helper()
	op, want, _ := strings.Cut(step, " = ")
	verb, arg, _ := strings.Cut(op, " ")
	got := b.act(verb, arg)
	synctest.Wait()
	if want != "" && got != want {
		b.t.Fatalf("%s: %s, want %s", op, got, want)
	}
}

func (b *bench) act(verb, arg string) string {
	said := func(accepted bool, err error) string {
		if err != nil {
			return code(err)
		}
		return map[bool]string{true: "accepted", false: "lost"}[accepted]
	}
	ctx := b.t.Context()
	c := b.claims[arg]
	switch verb {
	case "sleep":
		d, err := time.ParseDuration(arg)
		if err != nil {
			b.t.Fatal(err)
		}
		time.Sleep(d) // the bubble's clock
	case "attach":
		claim, ok := b.s.Attach("c")
		if !ok {
			return "gone"
		}
		b.claims[arg] = claim
		return claim.Remaining().String()
	case "detach":
		c.Detach()
	case "respond":
		return said(c.Respond(ctx, pick("pg")))
	case "wrong":
		return said(c.Respond(ctx, pick("oracle")))
	case "timeout":
		return said(c.Reject(ctx, CodeTimedOut))
	case "close":
		return said(c.Reject(ctx, CodeCancelled))
	case "cancel":
		b.cancel()
	case "withdraw":
		b.withdraw()
	case "ended":
		select {
		case e, ok := <-c.Ended():
			return fmt.Sprint(e.Outcome, " ", e.Mine, " ", ok)
		default:
			return "not yet"
		}
	default:
		b.t.Fatalf("no verb %q", verb)
	}
	return ""
}

func (b *bench) over() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

func TestWait(t *testing.T) {
	tests := []struct {
		name  string
		steps []string
		want  string // how it ends, after 10 s at most if it is timed
		at    time.Duration
		wait  time.Duration // 10 s if 0, without a bound if negative
	}{
		{name: "nobody comes", steps: []string{"sleep 10s"}, want: Pending, at: 10 * time.Second},
		{name: "a claim stops the host's timer", steps: []string{"sleep 4s", "attach a = 6s", "sleep 100s", "respond a = accepted"}, want: Answered, at: 104 * time.Second},
		{name: "losing the last claim restores the original deadline", steps: []string{"attach a = 10s", "sleep 4s", "detach a", "sleep 6s"}, want: Pending, at: 10 * time.Second},
		{name: "losing the last claim past the deadline ends it at once", steps: []string{"attach a", "sleep 15s", "detach a"}, want: Pending, at: 15 * time.Second},
		{name: "losing one of two claims changes nothing", steps: []string{"attach a", "attach b", "sleep 15s", "detach a", "sleep 5s", "respond b = accepted"}, want: Answered, at: 20 * time.Second},
		{name: "losing both", steps: []string{"attach a", "attach b", "sleep 15s", "detach a", "sleep 1s", "detach b"}, want: Pending, at: 16 * time.Second},
		{name: "detaching twice is once", steps: []string{"attach a", "attach b", "detach a", "detach a", "sleep 15s", "timeout b = accepted"}, want: Pending, at: 15 * time.Second},
		{name: "a claim again after one was lost", steps: []string{"attach a", "sleep 5s", "detach a", "sleep 2s", "attach a = 3s", "sleep 30s", "respond a = accepted"}, want: Answered, at: 37 * time.Second},
		{name: "attaching at the deadline yields nothing", steps: []string{"sleep 10s", "attach a = gone"}, want: Pending, at: 10 * time.Second},
		{name: "attaching past the deadline beside another claim", steps: []string{"attach a", "sleep 12s", "attach b = 0s", "respond b = accepted"}, want: Answered, at: 12 * time.Second},
		{name: "the client's countdown makes it pending", steps: []string{"attach a", "sleep 10s", "timeout a = accepted", "ended a = pending true true"}, want: Pending, at: 10 * time.Second},
		{name: "another client's expiry settles it for all", steps: []string{"attach a", "attach b", "sleep 10s", "timeout b = accepted", "ended a = pending false true", "respond a = lost"}, want: Pending, at: 10 * time.Second},
		{name: "another client's answer settles it for all", steps: []string{"attach a", "attach b", "respond b = accepted", "timeout a = lost", "ended a = answered false true", "ended b = answered true true"}, want: Answered},
		{name: "without a claim nothing is taken", steps: []string{"attach a", "detach a", "respond a = NO_CLAIM", "timeout a = NO_CLAIM", "ended a =  false false", "sleep 10s"}, want: Pending, at: 10 * time.Second},
		{name: "a batch that does not fit lets the wait go on", steps: []string{"attach a", "wrong a = BAD_ANSWER", "sleep 20s", "respond a = accepted"}, want: Answered, at: 20 * time.Second},
		{name: "a client closes it", steps: []string{"attach a", "attach b", "sleep 3s", "close a = accepted", "ended a = cancelled true true", "ended b = cancelled false true", "respond b = lost"}, want: Cancelled, at: 3 * time.Second},
		{name: "without a claim nobody closes it", steps: []string{"attach a", "detach a", "close a = NO_CLAIM", "sleep 10s"}, want: Pending, at: 10 * time.Second},
		{name: "cancelled while nobody holds it", steps: []string{"sleep 3s", "cancel"}, want: Aborted, at: 3 * time.Second},
		{name: "cancelled while it is claimed", steps: []string{"attach a", "sleep 3s", "cancel", "ended a = aborted false true", "respond a = lost", "detach a"}, want: Aborted, at: 3 * time.Second},
		{name: "after the end the call is unknown", steps: []string{"cancel", "attach a = gone"}, want: Aborted},
		{name: "the provider's leaving does not end a timed wait", steps: []string{"withdraw", "sleep 10s"}, want: Pending, at: 10 * time.Second},

		{name: "blocking: no time ends it", wait: -1, steps: []string{"sleep 1000h", "attach a = -1ns", "sleep 1000h", "respond a = accepted"}, want: Answered, at: 2000 * time.Hour},
		{name: "blocking: closed", wait: -1, steps: []string{"attach a", "attach b", "close a = accepted", "ended a = cancelled true true", "ended b = cancelled false true"}, want: Cancelled},
		{name: "blocking: it does not time out", wait: -1, steps: []string{"attach a", "timeout a = BAD_OUTCOME", "close a = accepted"}, want: Cancelled},
		{name: "blocking: handed over it waits for another", wait: -1, steps: []string{"attach a", "detach a", "sleep 9h", "attach b", "respond b = accepted"}, want: Answered, at: 9 * time.Hour},
		{name: "blocking: nobody is left", wait: -1, steps: []string{"sleep 1s", "withdraw"}, want: Aborted, at: time.Second},
		{name: "blocking: nobody is left but a claim", wait: -1, steps: []string{"attach a", "withdraw", "sleep 5s", "detach a"}, want: Aborted, at: 5 * time.Second},
		{name: "blocking: nobody is left but a claim that answers", wait: -1, steps: []string{"attach a", "withdraw", "respond a = accepted"}, want: Answered},
		{name: "blocking: cancelled", wait: -1, steps: []string{"sleep 1s", "cancel"}, want: Aborted, at: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait := tt.wait
				if wait == 0 {
					wait = 10 * time.Second
				}
				b := newBench(t, KindQuestion, wait, nil)
				defer b.cancel()
				for _, step := range tt.steps {
					b.do(step)
				}
				if !b.over() {
					t.Fatal("it has not ended")
				}
				if got := b.outcome.word(); got != tt.want || b.at != tt.at {
					t.Errorf("%s after %v, want %s after %v", got, b.at, tt.want, tt.at)
				}
				if !slices.Equal(b.commits, []string{tt.want}) {
					t.Errorf("committed %v, want %s once", b.commits, tt.want)
				}
				empty(t, b.s)
			})
		})
	}
}

func TestAbortSaysThatTheQuestionStays(t *testing.T) {
	for kind, want := range map[Kind]bool{KindQuestion: true, KindLegacy: false, KindApproval: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, kind, -1, nil)
			b.do("cancel")
			if e := b.outcome.Err; e == nil || e.Code != CodeAborted || strings.Contains(e.Message, "stays answerable under callId c") != want {
				t.Errorf("%s: %v", kind, e)
			}
		})
	}
}

// While the settlement is being written nobody is told, and nobody else can win.
func TestNobodyIsToldBeforeTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := make(chan struct{})
		b := newBench(t, KindQuestion, 10*time.Second, func(Outcome) error { <-disk; return nil })
		var events []string
		defer b.s.Watch(func(e Event) { events = append(events, e.Type) })()
		b.do("attach a")
		b.do("attach b")
		replies := make(map[string]string)
		var mu sync.Mutex
		for _, op := range []string{"respond a", "timeout b"} {
			go func() {
				verb, arg, _ := strings.Cut(op, " ")
				got := b.act(verb, arg)
				mu.Lock()
				defer mu.Unlock()
				replies[arg] = got
			}()
			synctest.Wait()
		}
		b.do("cancel")
		b.do("sleep 60s")
		b.do("attach c = gone")
		b.do("ended a = not yet")
		b.do("ended b = not yet")
		if len(replies) != 0 || len(events) != 0 || b.over() || len(b.s.Waits()) != 0 {
			t.Fatalf("told before the disk: %v, %v", replies, events)
		}
		close(disk)
		synctest.Wait()
		if replies["a"] != "accepted" || replies["b"] != "lost" {
			t.Errorf("%v", replies)
		}
		if b.outcome.word() != Answered || !slices.Equal(events, []string{Closed}) {
			t.Errorf("%+v, %v", b.outcome, events)
		}
		b.do("ended a = answered true true")
		b.do("ended b = answered false true")
		empty(t, b.s)
	})
}

// A client that vanishes while its accepted answer is being written has still answered.
func TestDetachWhileSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := make(chan struct{})
		b := newBench(t, KindQuestion, 10*time.Second, func(Outcome) error { <-disk; return nil })
		b.do("attach a")
		go func() { _, _ = b.claims["a"].Respond(t.Context(), pick("pg")) }() // what it comes to shows in how the wait ends
		synctest.Wait()
		b.do("detach a")
		b.do("sleep 20s")
		close(disk)
		synctest.Wait()
		if b.outcome.word() != Answered {
			t.Errorf("%+v", b.outcome)
		}
		empty(t, b.s)
	})
}

func TestSettlementThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, KindQuestion, 10*time.Second, func(Outcome) error { return errors.New("disk full") })
		b.do("attach a")
		b.do("attach b")
		b.do("respond a = LOG_WRITE")
		if e := b.outcome.Err; e == nil || e.Code != CodeLogWrite || !strings.Contains(e.Message, "disk full") {
			t.Errorf("%+v", b.outcome)
		}
		b.do("ended a = aborted false true")
		b.do("respond b = lost")
		empty(t, b.s)
	})
}

// The wait against a reference of a few lines, over random histories.
func TestWaitAgainstModel(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			b := newBench(t, KindQuestion, 10*time.Second, nil)
			defer b.cancel()
			held := map[string]bool{}
			now, want, at := 0, "", 0
			finish := func(word string) { want, at = word, now }
			for range 30 {
				name := string(rune('a' + r.IntN(3)))
				verb := []string{"attach", "detach", "respond", "timeout", "wrong", "sleep", "sleep", "cancel"}[r.IntN(8)]
				if verb == "cancel" && r.IntN(4) > 0 {
					verb = "sleep"
				}
				step := verb + " " + name
				switch {
				case verb == "sleep":
					d := 1 + r.IntN(6)
					step = fmt.Sprintf("sleep %ds", d)
					if want == "" && len(held) == 0 && now+d >= 10 {
						want, at = Pending, 10
					}
					now += d
				case verb == "cancel":
					step = verb
					if want == "" {
						finish(Aborted)
					}
				case verb == "attach":
					if b.claims[name] != nil && held[name] {
						continue // the name is taken
					}
					if want != "" {
						step += " = gone"
					} else {
						held[name] = true
						step += " = " + (time.Duration(max(0, 10-now)) * time.Second).String()
					}
				case b.claims[name] == nil:
					continue
				case verb == "detach":
					if want == "" && held[name] {
						if delete(held, name); len(held) == 0 && now >= 10 {
							finish(Pending)
						}
					}
				case want != "" && held[name]:
					step += " = lost"
				case !held[name]:
					step += " = NO_CLAIM"
				case verb == "wrong":
					step += " = BAD_ANSWER"
				default:
					finish(map[string]string{"respond": Answered, "timeout": Pending}[verb])
					step += " = accepted"
				}
				b.do(step)
				if b.over() != (want != "") {
					t.Fatalf("seed %d: after %s: over %v, want %q", seed, step, b.over(), want)
				}
			}
			if want == "" {
				return
			}
			if got := b.outcome.word(); got != want || b.at != time.Duration(at)*time.Second {
				t.Errorf("seed %d: %s after %v, want %s after %ds", seed, got, b.at, want, at)
			}
			empty(t, b.s)
		})
	}
}

// Of N answers, an expiry, a cancel and clients that let go at the same instant,
// just one wins, it is the one that was committed, and all others are told so.
func TestOneSettlementWins(t *testing.T) {
	for round := range 300 {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, KindQuestion, 10*time.Second, nil)
			const clients = 6
			var wg sync.WaitGroup
			var mu sync.Mutex
			accepted := []string{}
			claims := make([]*Claim, clients)
			for i := range claims {
				claims[i], _ = b.s.Attach("c")
			}
			time.Sleep(10 * time.Second) // the client's countdowns are at their end
			for i, c := range claims {
				wg.Go(func() {
					var ok bool
					var err error
					word := Answered
					switch {
					case i < 3:
						ok, err = c.Respond(t.Context(), pick("pg"))
					case i == 3:
						word = Pending
						ok, err = c.Reject(t.Context(), CodeTimedOut)
					default:
						c.Detach()
						return
					}
					if err != nil {
						t.Error(err)
					}
					if e := <-c.Ended(); e.Mine != ok {
						t.Errorf("round %d: accepted %v, told mine %v", round, ok, e.Mine)
					}
					if ok {
						mu.Lock()
						defer mu.Unlock()
						accepted = append(accepted, word)
					}
				})
			}
			if round%2 == 0 {
				wg.Go(b.cancel)
			}
			wg.Wait()
			<-b.ended
			b.cancel()
			if len(accepted) > 1 || len(b.commits) != 1 || b.commits[0] != b.outcome.word() {
				t.Fatalf("round %d: accepted %v, committed %v, outcome %s", round, accepted, b.commits, b.outcome.word())
			}
			if len(accepted) == 1 && accepted[0] != b.outcome.word() {
				t.Errorf("round %d: accepted %v, outcome %s", round, accepted, b.outcome.word())
			}
			if len(accepted) == 0 && b.outcome.word() != Aborted {
				t.Errorf("round %d: nobody won, outcome %s", round, b.outcome.word())
			}
			empty(t, b.s)
		})
	}
}

// A client that attaches as the host's deadline rings either holds the wait or
// gets nothing; it never holds a wait that expires under it.
func TestAttachAtTheDeadline(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, KindQuestion, 10*time.Second, nil)
			defer b.cancel()
			c, _ := b.s.Attach("c")
			time.Sleep(10 * time.Second)
			var second *Claim
			var ok bool
			var wg sync.WaitGroup
			wg.Go(c.Detach)
			wg.Go(func() { second, ok = b.s.Attach("c") })
			wg.Wait()
			synctest.Wait()
			if b.over() == ok {
				t.Fatalf("attached %v, over %v", ok, b.over())
			}
			if ok {
				if accepted, err := second.Respond(t.Context(), pick("pg")); !accepted || err != nil {
					t.Errorf("%v, %v", accepted, err)
				}
			}
			<-b.ended
		})
	}
}
