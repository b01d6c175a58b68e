package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func (d *desk) say(id int, method, params string) {
	d.t.Helper()
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	if id == 0 {
		line = fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
	}
	select {
	case d.in <- line:
	case <-time.After(patience):
		d.t.Fatalf("%s %d is not taken up", method, id)
	}
}

// all are the answers to these requests, which come in any order.
func (d *desk) all(ids ...int) map[int]string {
	d.t.Helper()
	got := map[int]string{}
	for len(got) < len(ids) {
		select {
		case line := <-d.out:
			for _, id := range ids {
				if strings.Contains(line, fmt.Sprintf(`"id":%d,`, id)) {
					got[id] = line
				}
			}
		case <-time.After(patience):
			d.t.Fatalf("of %v came %v", ids, got)
		}
	}
	return got
}

const slowNew = `{"cwd":"/slow","mcpServers":[]}`

func slowLoad(id string) string {
	return fmt.Sprintf(`{"sessionId":%q,"cwd":"/slow","mcpServers":[]}`, id)
}

func promptOf(id, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text)
}

// opens waits until a slow session is being opened.
func (d *desk) opens(id string) {
	d.t.Helper()
	select {
	case got := <-d.opening:
		if got != id {
			d.t.Fatalf("%s is being opened, want %s", got, id)
		}
	case <-time.After(patience):
		d.t.Fatalf("%s is not being opened", id)
	}
}

// there lets the slow session be there.
func (d *desk) there() *fake {
	d.t.Helper()
	d.opened <- nil
	select {
	case f := <-d.late:
		return f
	case <-time.After(patience):
		d.t.Fatal("it is not there")
		return nil
	}
}

func TestASlowSessionHoldsUpNobodyElse(t *testing.T) {
	for method, id := range map[string]string{"session/new": "NEW", "session/load": "OLD", "session/resume": "OLD"} {
		t.Run(method, func(t *testing.T) {
			d := newDesk(t)
			params := slowNew
			if id == "OLD" {
				params = slowLoad(id)
			}
			d.say(3, method, params)
			d.opens(id)
			d.queue(4, "a")
			d.say(0, "session/cancel", `{"sessionId":"S"}`)
			d.say(5, "session/list", `{}`)
			d.want(5, `result {"sessions":[]}`)
			d.fake.idle()
			d.want(4, `"cancelled"`)
			d.there()
			d.want(3, `"currentModeId":"read-only"`)
			d.say(6, "session/prompt", promptOf(id, "refuse"))
			d.want(6, "the disk is full") // it is open
			d.end()
		})
	}
}

func TestWhatFollowsASlowLoadWaitsForItInItsOrder(t *testing.T) {
	d := newDesk(t)
	d.say(3, "session/load", slowLoad("OLD"))
	d.opens("OLD")
	d.say(4, "session/prompt", promptOf("OLD", "a"))
	d.say(5, "session/prompt", promptOf("OLD", "b"))
	d.want(5, `error {"code":-32602`)
	d.say(6, "session/load", slowLoad("OLD"))
	d.want(6, `error {"code":-32602`)
	d.say(7, "session/list", `{}`)
	d.want(7, "result")
	f := d.there()
	d.want(3, "result")
	select {
	case got := <-f.queued:
		if got != "a" {
			t.Errorf("%q is queued", got)
		}
	case <-time.After(patience):
		t.Fatal("nothing is queued")
	}
	f.receipt("a")
	f.turn(1, completed, "a")
	f.idle()
	d.want(4, "end_turn")
	d.end()
}

func TestACancelDuringASlowLoadCancelsThePromptBehindIt(t *testing.T) {
	d := newDesk(t)
	d.say(3, "session/load", slowLoad("OLD"))
	d.opens("OLD")
	d.say(4, "session/prompt", promptOf("OLD", "a"))
	d.say(0, "session/cancel", `{"sessionId":"OLD"}`)
	d.say(5, "session/list", `{}`)
	d.want(5, "result")
	f := d.there()
	d.want(4, `"cancelled"`)
	if len(f.queued) != 0 {
		t.Error("the cancelled prompt is queued")
	}
	d.end()
}

func TestASlowLoadThatFailsFailsThePromptBehindIt(t *testing.T) {
	d := newDesk(t)
	d.say(3, "session/load", slowLoad("OLD"))
	d.opens("OLD")
	d.say(4, "session/prompt", promptOf("OLD", "a"))
	d.say(9, "session/list", `{}`)
	d.want(9, "result")
	d.opened <- errors.New("the log is damaged")
	for id, line := range d.all(3, 4) {
		if !strings.Contains(line, "the log is damaged") {
			t.Errorf("%d: %s", id, line)
		}
	}
	d.say(5, "session/prompt", promptOf("OLD", "a"))
	d.want(5, "SESSION_NOT_FOUND")
	d.say(6, "session/load", slowLoad("OLD"))
	d.opens("OLD")
	d.there()
	d.want(6, "result")
	d.end()
}

func TestCancelRequestEndsASlowSession(t *testing.T) {
	for _, method := range []string{"session/new", "session/load"} {
		d := newDesk(t)
		d.say(3, method, slowLoad("NEW"))
		d.opens("NEW")
		if method == "session/load" { // with what waits for it
			d.say(4, "session/prompt", promptOf("NEW", "a"))
		}
		d.say(0, cancelRequest, `{"requestId":3}`)
		if method == "session/load" {
			for id, line := range d.all(3, 4) {
				if want := map[int]string{3: "-32800", 4: `"cancelled"`}[id]; !strings.Contains(line, want) {
					t.Errorf("%d: %s", id, line)
				}
			}
		} else {
			d.want(3, `error {"code":-32800`)
		}
		d.end()
	}
}

func TestClosingASessionEndsItsSlowLoad(t *testing.T) {
	d := newDesk(t)
	d.say(3, "session/load", slowLoad("OLD"))
	d.opens("OLD")
	d.say(4, "session/prompt", promptOf("OLD", "a"))
	d.say(5, "session/close", `{"sessionId":"OLD"}`)
	d.say(6, "session/prompt", promptOf("OLD", "b"))
	for id, line := range d.all(3, 4, 5, 6) {
		if strings.Contains(line, `"error"`) != (id == 3 || id == 6) {
			t.Errorf("%d: %s", id, line)
		}
	}
	d.end()
}

// The client reads the replay slowly, and looks at it no further than it wants to.
func TestAReplayEndsWhenItIsNotWantedAnyMore(t *testing.T) {
	const events = 2000
	for name, end := range map[string]struct {
		id             int
		method, params string
		says           string
	}{
		"cancelled": {0, "$/cancel_request", `{"requestId":3}`, "the request was cancelled"},
		"closed":    {4, "session/close", `{"sessionId":"OLD"}`, "closed while it was being opened"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			for n := range events {
				e, err := session.NewEvent(session.TypeUserMessage, 1, message(fmt.Sprint(n)))
				if err != nil {
					t.Fatal(err)
				}
				e.Seq = int64(n)
				d.fake.past.Events = append(d.fake.past.Events, []byte(strings.TrimSpace(string(e.AppendLine(nil)))))
			}
			d.fake.past.NextSeq = events
			d.say(3, "session/load", `{"sessionId":"OLD","cwd":"/ws","mcpServers":[]}`)
			for told := 0; told < 3; {
				if strings.Contains(<-d.out, "session/update") {
					told++
				}
			}
			d.say(end.id, end.method, end.params)
			d.say(5, "session/list", `{}`) // is looked at once that has been
			updates, loaded := 0, ""
			for loaded == "" {
				switch line := <-d.out; {
				case strings.Contains(line, "session/update"):
					updates++
				case strings.Contains(line, `"id":3,`):
					loaded = line
				}
			}
			if !strings.Contains(loaded, end.says) || updates > cap(d.out)+8 {
				t.Errorf("after %d updates more: %s", updates, loaded)
			}
			if d.fake.closed != 1 {
				t.Errorf("the session was closed %d times", d.fake.closed)
			}
			d.end()
		})
	}
}

func TestASessionThatIsLoadedAgainIsFreedFirst(t *testing.T) {
	d := newDesk(t)
	old := d.fake
	d.fake = newFake()
	d.say(3, "session/close", `{"sessionId":"S"}`)
	d.say(4, "session/load", `{"sessionId":"S","cwd":"/ws","mcpServers":[]}`)
	d.all(3, 4)
	d.say(5, "session/load", slowLoad("S"))
	d.opens("S")
	old.mu.Lock()
	closed := old.closed
	old.mu.Unlock()
	if closed != 1 {
		t.Errorf("closed %d times before it was taken again", closed)
	}
	d.there()
	d.want(5, "result")
	d.end()
}

func TestASlowSessionAtTheEndIsAnswered(t *testing.T) {
	d := newDesk(t)
	d.say(3, "session/new", slowNew)
	d.opens("NEW")
	close(d.in)
	f := d.there()
	d.want(3, `result {"modes"`)
	if err := <-d.done; err != nil || f.closed != 1 {
		t.Errorf("%v, closed %d times", err, f.closed)
	}
}

func TestASlowSessionAtTheEndIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.say(3, "session/new", slowNew)
		d.say(4, "session/load", slowLoad("OLD"))
		d.say(5, "session/prompt", promptOf("OLD", "a"))
		begun := time.Now()
		close(d.in)
		for id, line := range d.all(3, 4, 5) {
			if want := map[int]string{3: "OWNER_LEAVING", 4: "OWNER_LEAVING", 5: `"cancelled"`}[id]; !strings.Contains(line, want) {
				t.Errorf("%d: %s", id, line)
			}
		}
		if err := <-d.done; err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != flushTime {
			t.Errorf("the end took %v", took)
		}
	})
}

func TestAnInterruptDoesNotWaitForASlowSession(t *testing.T) {
	d := &desk{
		t: t, fake: newFake(), in: make(chan string), out: make(chan string, 256), done: make(chan error, 1),
		opening: make(chan string, 16), opened: make(chan error, 16), late: make(chan *fake, 16),
	}
	ctx, interrupt := context.WithCancel(context.Background())
	go func() { d.done <- serve(ctx, d, d, d, Options{}) }()
	d.say(1, "initialize", `{"protocolVersion":1}`)
	d.say(2, "session/new", slowNew)
	d.opens("NEW")
	interrupt()
	d.want(2, "error")
	close(d.in)
	if err := <-d.done; err != nil {
		t.Error(err)
	}
}

func TestSlowSessionsAreBounded(t *testing.T) {
	d := newDesk(t)
	ids := []int{100, 101}
	for i := range atOnce {
		id := fmt.Sprintf("OLD%d", i)
		d.say(10+i, "session/load", slowLoad(id))
		d.opens(id)
		ids = append(ids, 10+i)
	}
	d.say(100, "session/load", slowLoad("MORE"))
	select {
	case d.in <- `{"jsonrpc":"2.0","id":1000,"method":"session/list","params":{}}`:
		t.Error("more is taken up while so many are being opened")
	case <-d.opening:
		t.Error("more are being opened at once")
	case <-time.After(50 * time.Millisecond):
	}
	for range atOnce + 1 {
		d.opened <- nil
	}
	d.say(101, "session/list", "{}")
	for id, line := range d.all(ids...) {
		if strings.Contains(line, `"error"`) {
			t.Errorf("%d: %s", id, line)
		}
	}
	d.end()
}
