package acp

import (
	"context"
	"errors"
	"testing"
	"time"
)

// unread is the output of a client that reads nothing after its second message:
// writing waits, and then gives the client up.
type unread struct {
	*desk
	left    int
	waiting chan struct{} // closed when a write waits
	dropped chan struct{} // from the test: the client is given up
}

var errDropped = errors.New("the client was dropped")

func (u *unread) Write(line []byte) (int, error) {
	if u.left > 0 {
		u.left--
		return u.desk.Write(line)
	}
	select {
	case <-u.waiting:
	default:
		close(u.waiting)
	}
	<-u.dropped
	return 0, errDropped
}

func TestAClientThatDoesNotReadHoldsUpItsOwnUpdatesAlone(t *testing.T) {
	d := &desk{t: t, fake: newFake(), in: make(chan string), out: make(chan string, 256), done: make(chan error, 1)}
	u := &unread{desk: d, left: 2, waiting: make(chan struct{}), dropped: make(chan struct{})}
	go func() { d.done <- serve(context.Background(), d, u, d, Options{}) }()
	d.say(1, "initialize", `{"protocolVersion":1}`)
	d.say(2, "session/new", `{"cwd":"/ws","mcpServers":[]}`)
	d.all(1, 2)
	d.queue(3, "a")
	d.fake.turn(1, failed) // somebody else's, which is told
	<-u.waiting
	d.fake.turn(2, completed, "a") // the agent goes on
	d.fake.idle()
	d.say(0, "session/cancel", `{"sessionId":"S"}`) // and so does what needs no answer
	close(d.in)
	close(u.dropped)
	select {
	case err := <-d.done:
		if err != nil {
			t.Error(err) // why the client was dropped is its stream's to say
		}
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
	if d.fake.closed != 1 {
		t.Errorf("the session was closed %d times", d.fake.closed)
	}
}
