package cli

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"deepseek/internal/prompt"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// interrupt is Ctrl+C at a card, whose terminal makes no signal of it.
const interrupt = syscall.SIGINT

// remoteDesk takes a card's answer to the owner of a live session. Attach and
// Ended are called by the card alone; the forwarding goroutine ends with the
// wait or the connection.
type remoteDesk struct {
	*remote.Desk
	once  sync.Once
	ended chan prompt.Ended
}

func (d *remoteDesk) Attach(ctx context.Context) (time.Duration, bool, error) {
	remaining, timed, err := d.Desk.Attach(ctx)
	return remaining, timed, deskError(err)
}

func (d *remoteDesk) Respond(ctx context.Context, answers []session.Answer) (bool, error) {
	ok, err := d.Desk.Respond(ctx, answers)
	return ok, deskError(err)
}

func (d *remoteDesk) Reject(ctx context.Context, code string) (bool, error) {
	ok, err := d.Desk.Reject(ctx, code)
	return ok, deskError(err)
}

func (d *remoteDesk) Late(ctx context.Context, answers []session.Answer) (bool, error) {
	ok, err := d.Desk.Late(ctx, answers)
	return ok, deskError(err)
}

func (d *remoteDesk) Ended() <-chan prompt.Ended {
	d.once.Do(func() {
		d.ended = make(chan prompt.Ended, 1)
		go func() {
			defer close(d.ended)
			for e := range d.Desk.Ended() {
				d.ended <- promptEnded(e)
			}
		}()
	})
	return d.ended
}

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
}

func (d *answerDesk) Late(ctx context.Context, answers []session.Answer) (bool, error) {
	err := d.x.late(ctx, d.q, answers)
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
	list, _, err := readQuestions(ctx, d.x.app.key(), d.x.t.path, false)
	if err != nil {
		return "", err
	}
	open, settled := fromList(list)
	for _, q := range open {
		if q.callID == d.q.callID {
			return q.state, nil
		}
	}
	if slices.Contains(settled, d.q.callID) {
		return prompt.StateSettled, nil
	}
	return prompt.StateRemoved, nil
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
