package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/remote"
)

const (
	reachTime = 10 * time.Second // to find an owner or to become it
	// leaveTime is for an owner that is leaving: one whose output is read is gone
	// by then, and one whose output is not may stay for ever.
	leaveTime  = closeTime + time.Second
	reachPause = 50 * time.Millisecond
)

// reach finds the session and does what is asked, through the live owner if
// there is one, else as its owner. An owner that is just leaving, or just
// coming, is waited out: socket and lock are tried in turn.
//
// live gets a client that it need not close. dead gets a session that is
// claimed and must be closed by it.
func (a *App) reach(ctx context.Context, cfg *config.Config, t target, live func(context.Context, *remote.Client) error, dead func(context.Context, *owner) error) error {
	bound, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var leaving *time.Timer // ends bound
	var busy error          // what the last look at the lock has shown
	for {
		tried := a.throughSocket(bound, ctx, cfg.Home, t, live)
		if !errors.Is(tried, errTryAgain) {
			return tried
		}
		if errors.Is(tried, errLeaving) && leaving == nil {
			leaving = time.AfterFunc(leaveTime, cancel)
			defer leaving.Stop()
		}
		own, err := a.claim(bound, cfg, t)
		if err == nil {
			return dead(ctx, own)
		}
		if bound.Err() == nil { // else the look was cut short
			if held := (*logstore.BusyError)(nil); !errors.As(err, &held) {
				return err
			}
			busy = err
		}
		pause := time.NewTimer(reachPause)
		select {
		case <-pause.C:
		case <-bound.Done():
			pause.Stop()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if busy == nil { // all the time went by with an owner that does not answer
				busy = a.reachable(ctx, cfg.Home, logstore.Unanswered(t.path))
			}
			return busy
		}
	}
}

// errTryAgain says that nothing was delivered to an owner, errLeaving too: it is about to go.
var (
	errTryAgain = errors.New("no owner took the request")
	errLeaving  = fmt.Errorf("%w: it is leaving", errTryAgain)
)

// reachable adds, where err is that a session is in use, what helps: the commands
// that reach an owner at work, or why none does. The commands name the root's
// session, by id where the store has it and else by its file.
func (a *App) reachable(ctx context.Context, home string, err error) error {
	var busy *logstore.BusyError
	switch {
	case !errors.As(err, &busy):
		return err
	case busy.LastPID != 0:
		return fmt.Errorf("%w\nlast known: process %d, which may be stopped (kill -CONT %[2]d lets it go on) or hang", err, busy.LastPID)
	case busy.PID == 0:
		return err
	case remote.LifeAt(ctx, busy.Socket) == remote.Leaving:
		return fmt.Errorf("%w\nits run is over and takes nothing more; that process ends when its output has been read", err)
	}
	if ref, ok := a.rootOf(home, busy); ok {
		return fmt.Errorf("%w\nreach it with: %s or %s", err, a.command(home, "answer", ref), a.command(home, "send", ref, "MESSAGE"))
	}
	return err
}

// rootOf is how commands name the session whose owner has the file that is busy.
func (a *App) rootOf(home string, busy *logstore.BusyError) (ref string, ok bool) {
	if in, err := inStore(home, busy.Path); err == nil && in {
		if _, err := a.store(home).Locate(busy.Session, ""); err == nil {
			return busy.Session, true
		}
	}
	for _, path := range []string{busy.Path, filepath.Join(filepath.Dir(busy.Path), busy.Session+".jsonl")} {
		if h, err := logstore.ReadHeader(path); err == nil && h.ID == busy.Session {
			return path, true
		}
	}
	return "", false
}

// throughSocket asks the live owner. bound limits the connecting, ctx the rest.
func (a *App) throughSocket(bound, ctx context.Context, home string, t target, live func(context.Context, *remote.Client) error) error {
	o, err := logstore.ReadOwner(t.path)
	if err != nil || o.Socket == "" {
		return errTryAgain // no owner, or one that is just coming
	}
	if ofRoot(t.path, o) {
		switch remote.LifeAt(bound, o.Socket) {
		case remote.Dead:
			return errTryAgain
		case remote.Leaving:
			return errLeaving
		}
		return a.reachable(ctx, home, o.Busy(t.path))
	}
	c, err := remote.Dial(bound, o.Socket, remote.WithRedact(a.key().Bytes))
	if err == nil {
		err = live(ctx, c)
		err = errors.Join(err, c.Close())
	}
	var refused *remote.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, remote.ErrNotDelivered):
		return errTryAgain
	case errors.As(err, &refused) && refused.Code == remote.CodeOwnerLeaving:
		return errLeaving
	case errors.As(err, &refused) && refused.Code == remote.CodeCallerIsTool:
		return &Coded{Exit: ExitUsage, Code: refused.Code, Message: refused.Message}
	case errors.Is(err, remote.ErrLost):
		return &Coded{
			Exit: ExitBusy, Code: "OUTCOME_UNKNOWN", Message: "the owner of the session went away before it answered; whether the request took effect is not known",
			Hint: "look with: " + a.command(home, "questions", t.ref),
		}
	}
	return err
}

// target is a session that an argument of the command line names.
type target struct {
	path string
	ref  string // how commands name it: the id, or the path it was given by
}

// target locates the session that an argument names.
func (a *App) target(cfg *config.Config, arg string) (target, error) {
	cwd, err := a.Cwd()
	if err != nil {
		return target{}, err
	}
	path, err := a.store(cfg.Home).Locate(arg, cwd)
	if err != nil {
		return target{}, err
	}
	t := target{path: path, ref: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	if byPath(arg) {
		t.ref = path
	}
	return t, nil
}

// byPath tells whether a session argument is a path, by the rule of Locate.
func byPath(arg string) bool { return strings.HasSuffix(arg, ".jsonl") }
