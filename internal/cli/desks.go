package cli

import (
	"context"
	"errors"
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

// deadDesk takes the answer of a session that nobody runs: the command that
// owns it then queues it. There is no wait to attach to.
type deadDesk struct{ batch []session.Answer }

func (d *deadDesk) Attach(context.Context) (time.Duration, bool, error) {
	return 0, false, prompt.ErrGone
}

func (d *deadDesk) Respond(context.Context, []session.Answer) (bool, error) { return false, nil }
func (d *deadDesk) Reject(context.Context, string) (bool, error)            { return false, nil }

func (d *deadDesk) Late(_ context.Context, answers []session.Answer) (bool, error) {
	d.batch = answers
	return true, nil
}

func (d *deadDesk) State(context.Context) (string, error) { return prompt.StateContinued, nil }
func (d *deadDesk) Detach(context.Context) error          { return nil }
func (d *deadDesk) Ended() <-chan prompt.Ended            { return nil }
