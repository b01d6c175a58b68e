package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// interrupt is Ctrl+C at a card, whose terminal makes no signal of it.
const interrupt = syscall.SIGINT

// remoteDesk takes a card's answer to the owner of a live session. A claim belongs
// to a connection and goes with it; the state, a late answer and the next claim
// take the connection that there is by then. The card alone calls it; a forwarding
// goroutine ends with the wait or the connection.
type remoteDesk struct {
	line   *line
	callID string

	desk  *remote.Desk   // of the last claim, or the attempt at one; nil: there was none
	on    *remote.Client // its connection
	ended chan prompt.Ended
}

func (d *remoteDesk) Attach(ctx context.Context) (time.Duration, bool, error) {
	c, err := d.line.client(ctx)
	if err != nil {
		return 0, false, deskError(err)
	}
	if d.on != c {
		d.on, d.desk, d.ended = c, c.Desk(d.callID), nil
	}
	remaining, timed, err := d.desk.Attach(ctx)
	if err == nil && d.ended == nil {
		d.ended = make(chan prompt.Ended, 1)
		go forward(d.desk.Ended(), c.Done(), d.ended)
	}
	return remaining, timed, deskError(err)
}

// forward says how a wait ended in the card's words. Closed without a word means
// that the connection was lost.
func forward(from <-chan question.Ended, lost <-chan struct{}, to chan<- prompt.Ended) {
	defer close(to)
	select {
	case e, ok := <-from:
		if ok {
			to <- promptEnded(e)
		}
	case <-lost: // what was said before that is there
		select {
		case e, ok := <-from:
			if ok {
				to <- promptEnded(e)
			}
		default:
		}
	}
}

// Respond and Reject are called with a claim only.
func (d *remoteDesk) Respond(ctx context.Context, answers []session.Answer) (bool, error) {
	ok, err := d.desk.Respond(ctx, answers)
	return ok, deskError(err)
}

func (d *remoteDesk) Reject(ctx context.Context, code string) (bool, error) {
	ok, err := d.desk.Reject(ctx, code)
	return ok, deskError(err)
}

func (d *remoteDesk) Late(ctx context.Context, answers []session.Answer) (bool, error) {
	c, err := d.line.client(ctx)
	if err != nil {
		return false, deskError(err)
	}
	ok, err := c.Answer(ctx, d.callID, answers)
	return ok, deskError(err)
}

func (d *remoteDesk) State(ctx context.Context) (string, error) {
	c, err := d.line.client(ctx)
	if err != nil {
		return "", err
	}
	return c.State(ctx, d.callID)
}

func (d *remoteDesk) Detach(ctx context.Context) error {
	if d.desk == nil {
		return nil
	}
	return d.desk.Detach(ctx)
}

func (d *remoteDesk) Ended() <-chan prompt.Ended { return d.ended }

// deskError is an error of the client as the card understands it.
func deskError(err error) error {
	var r *remote.Error
	switch {
	case errors.Is(err, remote.ErrGone):
		return prompt.ErrGone
	case errors.As(err, &r):
		return &prompt.Refused{Code: r.Code, Message: r.Message}
	}
	return err
}

// answerDesk is the desk of `answer`. The foreground outcome goes to the owner
// that was live when the card was drawn; a late answer to whoever owns the
// session by then, which may be this process.
type answerDesk struct {
	prompt.Desk // of the live owner; nobody's where there was none
	x           *answering
	q           answerable

	// The state that the log last told, and the file as it was then: a card looks
	// over and over, and a log may be long.
	read  fs.FileInfo
	state string
}

func (d *answerDesk) Late(ctx context.Context, answers []session.Answer) (bool, error) {
	err := d.x.late(ctx, d.q, answers)
	if err != nil && d.x.removed() {
		return false, nil
	}
	var coded *Coded
	if errors.As(err, &coded) {
		if coded.Code == "NOT_ANSWERABLE" { // it was settled meanwhile; State says how
			return false, nil
		}
		return false, &prompt.Refused{Code: coded.Code, Message: coded.Message}
	}
	if err != nil && ctx.Err() == nil {
		c := failure(err)
		return false, &prompt.Refused{Code: c.Code, Message: c.Message}
	}
	return err == nil, err
}

// State is what the owner says, else what the log says.
func (d *answerDesk) State(ctx context.Context) (string, error) {
	if state, err := d.Desk.State(ctx); err == nil {
		return state, nil
	}
	now, err := os.Stat(d.x.t.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return prompt.StateRemoved, nil
	case err != nil:
		return "", err
	case d.read != nil && os.SameFile(now, d.read) && now.Size() == d.read.Size() && now.ModTime().Equal(d.read.ModTime()):
		return d.state, nil
	}
	list, _, err := readQuestions(ctx, d.x.app.key(), d.x.t.path, false)
	if err != nil {
		return "", err
	}
	d.read, d.state = now, prompt.StateRemoved
	open, settled := fromList(list)
	if slices.Contains(settled, d.q.callID) {
		d.state = prompt.StateSettled
	}
	for _, q := range open {
		if q.callID == d.q.callID {
			d.state = q.state
		}
	}
	return d.state, nil
}

// removed tells whether the session is gone altogether.
func (x *answering) removed() bool {
	_, err := os.Lstat(x.t.path)
	return errors.Is(err, fs.ErrNotExist)
}

// nobody is the desk of a wait that is over.
type nobody struct{}

func (nobody) Attach(context.Context) (time.Duration, bool, error)     { return 0, false, prompt.ErrGone }
func (nobody) Respond(context.Context, []session.Answer) (bool, error) { return false, nil }
func (nobody) Reject(context.Context, string) (bool, error)            { return false, nil }
func (nobody) Late(context.Context, []session.Answer) (bool, error)    { return false, nil }
func (nobody) State(context.Context) (string, error)                   { return "", prompt.ErrGone }
func (nobody) Detach(context.Context) error                            { return nil }
func (nobody) Ended() <-chan prompt.Ended                              { return nil }
