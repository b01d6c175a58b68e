package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// Answerers of the setting of that name.
const (
	answererTTY    = "tty"
	answererRemote = "remote"
	answererNone   = "none"
)

// asking is the owner's side of its questions: it tells on stderr what is
// asked and how to answer, and where there is a terminal draws the card. It is
// a client of the question service and holds no rule of it.
//
// mu owns cards, lost and closed; each card runs in a goroutine that close waits for.
type asking struct {
	o        *owner
	screen   *view.Screen
	prompter *prompt.Prompter // nil: nobody is asked here
	tty      *prompt.TTY
	stops    []func()

	ctx    context.Context // ends the cards
	cancel context.CancelFunc
	mu     sync.Mutex
	cards  map[string]*drawing // by call
	lost   map[string]bool     // calls that the terminal cannot ask for
	closed bool
	work   sync.WaitGroup
}

// drawing is a card that is on the terminal, or waits for its turn there.
type drawing struct {
	pending bool // the wait has ended so, and nobody has said it yet
	desk    *localDesk
}

// checkAnswerer refuses an answerer that cannot work here, before anything starts.
func (a *App) checkAnswerer(answerer string) error {
	if answerer == answererTTY && !a.canPrompt() {
		return usagef("--answerer tty needs a terminal: %s\nuse --answerer none or remote, and answer with `deepseek answer` from another shell", a.noPrompt())
	}
	return nil
}

func (a *App) canPrompt() bool { return a.noPrompt() == "" }

// noPrompt says why nobody can be asked in this terminal, "" where somebody can be.
func (a *App) noPrompt() string {
	switch {
	case !a.InTerminal():
		return "stdin is none"
	case !a.ErrTerminal():
		return "stderr is none"
	case !prompt.HasTTY():
		return "no terminal controls this process"
	}
	return ""
}

// startAsking begins. interrupt is what Ctrl+C at a card does. answers may be nil.
func (o *owner) startAsking(screen *view.Screen, answers *question.Script, fail func(error), interrupt func()) (*asking, error) {
	o.voice.use(screen.Detail)
	ctx, cancel := context.WithCancel(context.Background())
	as := &asking{o: o, screen: screen, ctx: ctx, cancel: cancel, cards: map[string]*drawing{}}
	if answers != nil {
		as.stops = append(as.stops, answers.Serve(o.questions, fail))
	}
	switch answerer := o.cfg.Answerer; {
	case answerer == answererNone:
	case answerer == answererRemote:
		as.stops = append(as.stops, o.questions.Provide(func(question.Card) bool { return true }))
	case o.app.canPrompt():
		tty, prompter, err := o.app.prompter(o.cfg, o.path(), screen)
		if err != nil {
			cancel()
			return nil, err
		}
		as.tty, as.prompter = tty, prompter
		screen.Above(prompter.Tell)
		as.stops = append(as.stops, o.questions.Provide(as.offers))
	}
	as.stops = append(as.stops, o.questions.Watch(func(ev question.Event) { as.see(ev, interrupt) }))
	return as, nil
}

// see is told of every wait that opens or ends. It does not wait for a person.
func (as *asking) see(ev question.Event, interrupt func()) {
	id := ev.Card.CallID
	switch {
	case ev.Type == question.Opened && ev.Card.Kind.Permits():
		as.announcePermit(ev.Card)
	case ev.Type == question.Opened:
		as.announce(ev.Card)
		as.o.hook("opened", ev.Card)
	case ev.Type == question.Closed && ev.Outcome == question.Pending:
		if !as.drawn(id, true) {
			as.leftPending(id)
		}
		as.notice(ev.Card)
		as.o.hook("pending", ev.Card)
	}
	if ev.Type != question.Opened || as.prompter == nil {
		return
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.closed {
		return
	}
	desk := &localDesk{service: as.o.questions, callID: id, ended: make(chan prompt.Ended, 1)}
	as.cards[id] = &drawing{desk: desk}
	card := as.prompter.Join(as.o.card(ev.Card), desk) // here, so that the first that is asked comes first
	as.work.Go(func() { as.draw(ev.Card, card, interrupt) })
}

func (as *asking) announce(c question.Card) {
	var lines []string
	for _, q := range c.Questions {
		line := "question " + c.CallID + ": "
		if q.Header != "" {
			line += view.OneLine(q.Header) + ": "
		}
		lines = append(lines, line+view.OneLine(q.Question))
	}
	as.tell(c, append(lines, "  "+as.o.answerCommand(c.CallID))...)
}

// tell shows lines about a call. The screen is not told of the calls of
// sub-agents, so nothing is to wait for them.
func (as *asking) tell(c question.Card, lines ...string) {
	if c.SessionID != as.o.header.ID {
		as.screen.Announce(lines...)
		return
	}
	as.screen.AnnounceOf(c.CallID, lines...)
}

// notice tells a workflow of GitHub Actions, whose page nobody would read stderr for.
func (as *asking) notice(c question.Card) {
	if as.o.app.Getenv("GITHUB_ACTIONS") != "true" {
		return
	}
	text := fmt.Sprintf("A question was left pending: %s\nAnswer it with: %s", c.Questions[0].Question, as.o.answerCommand(c.CallID))
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	line := "::notice title=deepseek::" + escape.Replace(text)
	as.o.app.Err.Command(line)
	as.screen.AnnounceAfter(c.CallID, line)
}

// leftPending follows the line of the call, which the log brings to the screen
// by another way.
func (as *asking) leftPending(callID string) {
	as.screen.AnnounceAfter(callID, "left pending, answer later with:", "  "+as.o.answerCommand(callID))
}

// drawn tells whether a card has the question in hand; pending leaves it to
// the card to say that it is.
func (as *asking) drawn(callID string, pending bool) bool {
	as.mu.Lock()
	defer as.mu.Unlock()
	c := as.cards[callID]
	if c != nil {
		c.pending = pending
		c.desk.over(question.Pending)
	}
	return c != nil
}

// draw runs one card to its end.
func (as *asking) draw(c question.Card, card func(context.Context) (prompt.Result, error), interrupt func()) {
	res, err := card(as.ctx)
	as.mu.Lock()
	pending := as.cards[c.CallID].pending
	delete(as.cards, c.CallID)
	as.mu.Unlock()
	if pending && (err != nil || res.Outcome != prompt.Expired) {
		as.leftPending(c.CallID) // the card has not said so
	}
	switch {
	case err != nil && c.Kind.Permits():
		if as.ctx.Err() == nil && !errors.Is(err, prompt.ErrGone) {
			as.screen.Note("the approval is not asked here: " + err.Error())
		}
		as.giveUp(c.CallID)
	case errors.Is(err, prompt.ErrTerminal):
		// The claim is let go: the host's deadline counts, another shell may answer.
		as.screen.Note("the question is not asked here: " + err.Error())
	case err == nil && res.Outcome == prompt.Interrupted:
		interrupt()
	case c.Kind.Permits():
		as.giveUp(c.CallID)
	}
}

// card is what the prompt draws of a wait.
func (o *owner) card(c question.Card) prompt.Card {
	card := prompt.Card{
		SessionID: o.header.ID, CallID: c.CallID, Kind: prompt.KindQuestion, Questions: c.Questions,
		Timed: c.Kind == question.KindQuestion, Blocking: !c.Timed, AnswerCommand: o.answerCommand(c.CallID),
	}
	return permitting(card, c.Kind)
}

// clear takes the cards away, and none comes any more.
func (as *asking) clear() {
	as.mu.Lock()
	as.closed = true
	as.mu.Unlock()
	as.cancel()
	as.work.Wait()
}

// close ends it all, with clear first. The terminal is as it was when it returns.
func (as *asking) close() error {
	as.clear()
	for _, stop := range as.stops {
		stop()
	}
	if as.tty != nil {
		return as.tty.Close()
	}
	return nil
}

// restore gives the terminal back, whoever holds it; for a process that ends on the spot.
func (as *asking) restore() {
	if as.tty != nil {
		_ = as.tty.Restore() // the process ends now
	}
}

// prompter opens the terminal for cards of the session whose file log is. The
// caller owes the terminal's Close.
func (a *App) prompter(cfg *config.Config, log string, screen prompt.Screen) (*prompt.TTY, *prompt.Prompter, error) {
	tty, err := prompt.OpenTTY(a.guard)
	if err != nil {
		return nil, nil, fmt.Errorf("open the terminal: %w", err)
	}
	return tty, &prompt.Prompter{
		Terminal: tty, Drafts: prompt.FileDrafts{Dir: logstore.DraftsDir(log), Log: log}, Screen: screen,
		Redact: func(text string) string { return a.key().String(text) },
		Colour: a.Colour(cfg), Plain: !a.Cursor(), Reflow: prompt.Reflows(a.Getenv),
	}, nil
}

// localDesk takes a card's answer to the question service of this process. The
// calls of a card never overlap, so its claim needs no lock; mu guards what
// over, called from elsewhere, shares with them.
type localDesk struct {
	service *question.Service
	callID  string
	claim   *question.Claim

	mu       sync.Mutex
	ended    chan prompt.Ended // of the claim; before it, of a card that waits for its turn
	attached bool
}

// over tells a card that has not claimed the wait yet that it has ended.
func (d *localDesk) over(outcome string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.attached {
		d.attached = true
		d.ended <- prompt.Ended{Outcome: outcome}
	}
}

func (d *localDesk) Attach(context.Context) (remaining time.Duration, timed bool, err error) {
	claim, ok := d.service.Attach(d.callID)
	if !ok {
		return 0, false, prompt.ErrGone
	}
	ended := make(chan prompt.Ended, 1)
	d.mu.Lock()
	d.claim, d.ended, d.attached = claim, ended, true
	d.mu.Unlock()
	go func() { // ends with the claim
		for e := range claim.Ended() {
			ended <- promptEnded(e)
			close(ended)
		}
	}()
	return claim.Remaining(), claim.Remaining() >= 0, nil
}

func promptEnded(e question.Ended) prompt.Ended {
	return prompt.Ended{Outcome: e.Outcome, Mine: e.Mine, Answers: e.Answers}
}

func (d *localDesk) Respond(ctx context.Context, answers []session.Answer) (bool, error) {
	if d.claim == nil {
		return false, &prompt.Refused{Code: prompt.CodeNoClaim, Message: "the claim on the question got lost"}
	}
	ok, err := d.claim.Respond(ctx, answers)
	return ok, refused(err)
}

func (d *localDesk) Reject(ctx context.Context, code string) (bool, error) {
	if d.claim == nil {
		return false, &prompt.Refused{Code: prompt.CodeNoClaim, Message: "the claim on the question got lost"}
	}
	ok, err := d.claim.Reject(ctx, code)
	return ok, refused(err)
}

func (d *localDesk) Late(ctx context.Context, answers []session.Answer) (bool, error) {
	ok, err := d.service.Answer(ctx, d.callID, answers)
	return ok, refused(err)
}

func (d *localDesk) State(context.Context) (string, error) {
	for _, c := range d.service.Waits() {
		if c.CallID == d.callID {
			return prompt.StateOpen, nil
		}
	}
	if q, _, found := d.service.State(d.callID); found {
		return string(q.State), nil
	}
	return prompt.StateRemoved, nil
}

func (d *localDesk) Detach(context.Context) error {
	if d.claim == nil {
		return nil
	}
	d.claim.Detach()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.claim, d.ended, d.attached = nil, make(chan prompt.Ended, 1), false // it may claim the wait again
	return nil
}

func (d *localDesk) Ended() <-chan prompt.Ended {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}

// refused is an error of the service as the card understands it.
func refused(err error) error {
	var q *question.Error
	if errors.As(err, &q) {
		return &prompt.Refused{Code: q.Code, Message: q.Message}
	}
	return err
}
