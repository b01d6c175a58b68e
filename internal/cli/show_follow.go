package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"deepseek/internal/logstore"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// follow shows the transcript so far, and then what happens until the owner
// leaves. Without an owner there is nothing to wait for.
func (r *reading) follow(ctx context.Context, signals *Signals) error {
	a := r.a
	store := a.store(r.cfg.Home)
	owner, live := store.LiveOwner(ctx, r.path)
	t, end, err := r.read(ctx, view.TextBound(true), live) // what runs already is named by its arguments
	if err != nil {
		return err
	}
	if err := a.printWhole(ctx, func(w io.Writer) error { return view.WriteText(w, t, r.text()) }); err != nil {
		return err
	}
	if !live {
		a.Warnf("deepseek: no run is at work on this session\n")
		return nil
	}
	if owner.Session != t.SessionID {
		a.Warnf("deepseek: this is a sub-agent's session, and its run cannot be followed by itself\nfollow the whole with: %s\n", a.command(r.cfg.Home, "show", owner.Session, "--follow"))
		return nil
	}
	echo := a.echo()
	defer signals.Last(echo.On)()
	f := &follower{reading: r, session: t.SessionID, next: end.Next, screen: view.NewScreen(a.Out, view.ScreenOptions{
		Terminal: a.OutTerminal(), Cursor: a.outCursor(),
		Colour: a.outColour(r.cfg), ASCII: !a.UTF8(), Width: a.outWidth, Verbose: r.o.expand, Echo: echo,
		Background: background(a.streams.Out),
	})}
	defer f.screen.Close()
	for _, c := range t.Running() {
		f.screen.ToolStarted(c.ID, c.Name, c.Arguments, c.Began)
	}
	lost := f.watch(ctx, owner.Socket)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.Out.Gone() {
		return nil
	}
	// What was logged and not told, because the owner left or was killed, is in the file.
	if err := f.rest(ctx); err != nil || lost == nil {
		return err
	}
	if working(ctx, owner.Socket) {
		return &Coded{
			Exit: ExitBusy, Code: "UNREACHABLE", Message: fmt.Sprintf("the run of session %s cannot be followed: %v", r.ref, lost),
			Hint: "see what it logged with: " + a.command(r.cfg.Home, "show", r.ref),
		}
	}
	f.screen.Note("the run has ended")
	return nil
}

// follower shows what happens, as it does, on stdout. One goroutine's.
type follower struct {
	*reading
	session string // its id
	screen  *view.Screen
	next    int64 // seq of the next event to show
}

// watch shows what the owner tells, until it leaves.
func (f *follower) watch(ctx context.Context, socket string) (err error) {
	c, err := remote.Dial(ctx, socket, remote.WithRedact(f.a.key().Bytes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	sub, err := c.Subscribe(ctx, f.next)
	if err != nil {
		return err
	}
	for !f.a.Out.Gone() {
		n, err := sub.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f.notice(n)
	}
	return nil
}

// working tells whether a session's owner is there and not about to go.
func working(ctx context.Context, socket string) bool {
	c, err := remote.Dial(ctx, socket)
	if err == nil {
		_ = c.Close() // it was only asked for a sign of life
		return true
	}
	var refused *remote.Error
	return errors.As(err, &refused) && refused.Code != remote.CodeOwnerLeaving
}

// rest shows what the file holds beyond what was shown.
func (f *follower) rest(ctx context.Context) error {
	_, err := logstore.Read(ctx, f.path, func(l logstore.Line) error {
		if l.Seq < f.next {
			return nil
		}
		e, err := l.Event()
		if err == nil {
			e.Data = f.a.key().Bytes(e.Data)
			f.event(e)
		}
		return err
	})
	return err
}

func (f *follower) notice(n remote.Notice) {
	switch {
	case n.Delta != nil:
		f.screen.Delta(n.Delta.Kind, n.Delta.Text)
	case n.Request != nil:
		f.request(n.Request)
	case n.Settled != nil:
		f.screen.Announce("  answered: " + n.Settled.CallID)
	case n.Event != nil:
		e, err := session.ParseEvent(n.Event)
		if err != nil {
			return // the owner checked it
		}
		f.event(e)
	}
}

// request shows what is asked, here or in a sub-agent's session.
func (f *follower) request(r *remote.RequestNote) {
	var lines []string
	for _, q := range r.Questions {
		lines = append(lines, "? "+r.CallID+": "+q.Question)
	}
	if r.Kind == question.KindQuestion {
		lines = append(lines, "  answer with: "+f.a.answerCommand(f.cfg.Home, f.ref, r.CallID))
	}
	if r.SessionID != f.session || r.Kind != question.KindQuestion { // whose id is not a call's
		f.screen.Announce(lines...)
		return
	}
	f.screen.AnnounceOf(r.CallID, lines...)
}

// event shows an event. What a run shows elsewhere, or knows, is added to what
// the screen shows: turns, messages from outside, and the final text in a pipe.
func (f *follower) event(e session.Event) {
	f.next = e.Seq + 1
	switch e.Type {
	case session.TypeTurnStart:
		var v session.TurnStart
		if json.Unmarshal(e.Data, &v) == nil {
			f.screen.Announce(fmt.Sprintf("\nturn %d", v.Turn))
		}
	case session.TypeUserMessage:
		var m session.UserMessage
		if json.Unmarshal(e.Data, &m) == nil && e.SurfaceOp == nil {
			f.message(m)
		}
	case session.TypeAssistantMessage:
		var m session.AssistantMessage
		if json.Unmarshal(e.Data, &m) == nil && !f.a.OutTerminal() && final(m.Message.Content) {
			f.screen.Announce(session.TextOf(m.Message.Content))
		}
	}
	f.screen.Event(e)
}

// message shows what entered a turn. A late answer was announced as settled,
// and a goal's round is the screen's to tell.
func (f *follower) message(m session.UserMessage) {
	switch m.Source.Kind {
	case session.SourceQuestionReply, session.SourceGoal:
	case session.SourceUser:
		f.screen.Announce("> " + session.TextOf(m.Content))
	default:
		f.screen.Note("> [" + m.Source.Kind + "]")
	}
}

// final tells whether a message has text and calls nothing.
func final(content []session.Block) bool {
	text := false
	for _, b := range content {
		if b.Type == session.BlockToolCall {
			return false
		}
		text = text || b.Text != "" && b.Type == session.BlockText
	}
	return text
}
