package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// see is told of every wait that opens or ends, and claims at once what the
// client can show. It does not block.
func (p *place) see(ev question.Event) {
	if ev.Type != question.Opened {
		return
	}
	durable := p.session.Durable()
	var claim remote.Claim
	buttons := choosable(ev.Card)
	if buttons || p.server.showsForms() && !ev.Card.Kind.Permits() {
		var ok bool
		if claim, ok = p.session.Attach(ev.Card.CallID); !ok {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		if claim != nil {
			claim.Detach()
		}
		return
	}
	c := &card{place: p, Card: ev.Card, claim: claim, form: !buttons, cancels: p.cancels}
	p.cards.Go(func() {
		if claim == nil {
			c.leave(durable)
			return
		}
		defer claim.Detach()
		c.ask(durable)
	})
}

// choosable tells whether a choice among buttons can answer every question. A
// batch of which one cannot be answered so is a form, where the client shows forms.
func choosable(c question.Card) bool {
	for _, q := range c.Questions {
		if q.MultiSelect || len(q.Options) == 0 {
			return false
		}
	}
	return true
}

// card is one wait that the client's person is asked about. It is its goroutine's.
type card struct {
	question.Card
	place   *place
	claim   remote.Claim // nil: the client cannot show it
	form    bool         // it is one form, not a choice for each question
	cancels int          // of the place, when it was opened

	answers []session.Answer // so far
	skipped bool             // the person will not answer
}

// asked is a request that is at the client.
type asked struct {
	id    <-chan json.RawMessage // of the request, once it went out
	reply chan reply
}

// reply is what became of a request: answers to what was asked, one at least, or
// none at all.
type reply struct {
	answers []session.Answer
	skipped bool  // the answers stand for the person's refusal to answer
	closed  bool  // without an answer, by the person
	unfit   error // what is wrong with the answer that the person gave
}

// leave leaves a question to a shell.
func (c *card) leave(durable int64) {
	if !c.place.await(c.place.server.ctx, func() bool { return c.place.told >= durable }) {
		return
	}
	c.say(c.words() + "\n" + c.command("Answer it in a terminal:"))
}

// ask puts the questions to the person, one after the other or in one form, and
// settles the wait.
func (c *card) ask(durable int64) {
	ctx, cancel := context.WithCancel(c.place.server.ctx)
	defer cancel()
	ended := make(chan question.Ended, 1)
	go func() { // ends with the claim
		e, ok := <-c.claim.Ended()
		if ok {
			ended <- e
		}
		cancel()
	}()
	expired := make(chan struct{})
	if left := c.claim.Remaining(); left >= 0 {
		stop := c.place.server.o.Clock.AfterFunc(left, func() { close(expired) })
		defer stop()
	}
	// The client is to know the call before it is asked about it.
	if !c.place.await(ctx, func() bool { return c.place.told >= durable }) {
		return
	}
	for len(c.answers) < len(c.Questions) {
		a := c.request()
		select {
		case r := <-a.reply:
			if !c.take(r) {
				c.refused(r)
				return
			}
		case <-expired:
			c.expire(ctx, ended)
			c.place.server.later(c, a)
			return
		case <-ctx.Done():
			c.lost(ended)
			c.place.server.later(c, a)
			return
		}
	}
	c.respond(ctx)
}

// request sends the client what comes next: one question, or the form.
func (c *card) request() *asked {
	if c.form {
		return c.requestForm()
	}
	i := len(c.answers)
	q := c.Questions[i]
	choices := choicesOf(c.Card, q)
	req := sdk.RequestPermissionRequest{SessionId: c.place.id, ToolCall: c.toolCall(i, q)}
	for _, ch := range choices {
		req.Options = append(req.Options, ch.option)
	}
	return send(c.place.server, sdk.ClientMethodSessionRequestPermission, func(meta map[string]any) any {
		req.Meta = meta
		return req
	}, func(res sdk.RequestPermissionResponse) reply {
		if chosen := res.Outcome.Selected; chosen != nil && chosen.Outcome == "selected" {
			for _, ch := range choices {
				if ch.option.OptionId == chosen.OptionId {
					return reply{answers: []session.Answer{{ID: q.ID, Selected: ch.selected}}}
				}
			}
			return reply{unfit: fmt.Errorf("there is no option %q", clip(string(chosen.OptionId)))}
		}
		return reply{closed: res.Outcome.Cancelled != nil && res.Outcome.Cancelled.Outcome == "cancelled"}
	})
}

// send sends the client a request that asks. request puts the mark into it by
// which the wire knows it; read reads the result. An error is no answer.
func send[R any](s *server, method string, request func(meta map[string]any) any, read func(R) reply) *asked {
	mark, id := s.wire.ask()
	a := &asked{id: id, reply: make(chan reply, 1)}
	params := request(map[string]any{askMeta: mark})
	s.work.Go(func() { // ends with the answer or the connection
		res, err := sdk.SendRequest[R](s.conn, s.ctx, method, params)
		if err != nil {
			s.o.Log.Debug("the client gave no answer", "method", method, "error", err)
			a.reply <- reply{}
			return
		}
		a.reply <- read(res)
	})
	return a
}

// take takes answers up; false if there are none.
func (c *card) take(r reply) bool {
	c.skipped = r.skipped
	c.answers = append(c.answers, r.answers...)
	return len(r.answers) > 0
}

// refused deals with a client that gave no answer: its person closed the
// question, or it failed to ask. What permits something is then a no, and a
// question that no time ends is ended, as where nobody can be asked. One that
// ends by itself is left to its time, and so is every question of which the
// person gave an answer that cannot be used: there is somebody who answers.
func (c *card) refused(r reply) {
	if c.place.server.gone() || c.place.wasCancelledSince(c.cancels) {
		return // whoever ended the work ends the wait
	}
	switch {
	case c.Kind.Permits(), r.unfit == nil && !c.Timed:
		_, _ = c.reject(question.CodeCancelled) // which has told its error; who else ended the wait does not matter
	case r.unfit != nil:
		c.unfit(r)
	default:
		c.say(c.words() + "\n" + c.command("It stays open; answer it in a terminal:"))
	}
}

// respond settles the wait with the whole batch.
func (c *card) respond(ctx context.Context) {
	accepted, err := c.claim.Respond(context.WithoutCancel(ctx), c.answers)
	switch {
	case err != nil:
		c.place.server.o.Log.Warn("an answer was not taken", "call", c.CallID, "error", err)
	case !accepted:
		c.late()
	}
}

// expire ends the wait when its time is up, unless somebody else just has.
// ctx ends when the wait has.
func (c *card) expire(ctx context.Context, ended <-chan question.Ended) {
	switch accepted, err := c.reject(question.CodeTimedOut); {
	case accepted:
		c.pending()
	case err == nil:
		<-ctx.Done()
		c.lost(ended)
	}
}

// lost says what the client is not told otherwise of a wait that somebody else ended.
func (c *card) lost(ended <-chan question.Ended) {
	select {
	case e := <-ended:
		if e.Outcome == question.Pending {
			c.pending()
		}
	default:
	}
}

func (c *card) reject(code string) (accepted bool, err error) {
	accepted, err = c.claim.Reject(context.WithoutCancel(c.place.server.ctx), code)
	if err != nil {
		c.place.server.o.Log.Warn("a question could not be ended", "call", c.CallID, "error", err)
	}
	return accepted, err
}

// late sends the batch as a late answer, if the person gave one: a form that is
// declined once its question is pending, perhaps by a client that closes what was
// cancelled, settles nothing.
func (c *card) late() {
	p := c.place
	p.mu.Lock()
	leaving := p.leaving
	p.mu.Unlock()
	if leaving || c.skipped || c.Kind.Permits() || len(c.answers) != len(c.Questions) {
		return
	}
	accepted, err := p.session.Answer(context.WithoutCancel(p.server.ctx), c.CallID, c.answers)
	var own *question.Error
	switch {
	case errors.As(err, &own) && own.Code == question.CodeReplyQueued:
		c.say("That question has another answer already, which the agent has not read yet.")
	case err != nil && !isLeaving(err):
		c.say("The answer was not taken: " + err.Error())
	case err == nil && !accepted:
		c.say("That question is not open any more: it was answered elsewhere, or the call has ended otherwise.")
	}
}

// later takes a request back that is at the client and not needed any more. An
// answer that still arrives is sent as a late one if it makes the batch whole.
func (s *server) later(c *card, a *asked) {
	s.work.Go(func() { // ends with the answer or the connection
		select {
		case id := <-a.id:
			// It fails only where the connection has ended.
			_ = s.conn.SendNotification(s.ctx, cancelRequest, map[string]any{"requestId": id})
		case r := <-a.reply:
			a.reply <- r
		}
		r := <-a.reply
		switch {
		case c.take(r):
			c.late()
		case r.unfit != nil && !c.Kind.Permits() && !s.gone() && !c.place.wasCancelledSince(c.cancels):
			c.unfit(r)
		}
	})
}

// pending says that the agent went on without an answer.
func (c *card) pending() {
	c.say(c.words() + "\n" + c.command("Left pending. Answer it later with:"))
}

// unfit says why an answer of the person is none.
func (c *card) unfit(r reply) {
	c.say(c.words() + "\nThe answer cannot be used: " + r.unfit.Error() + ".\n\n" + c.command("The question stays open; answer it in a terminal:"))
}

// say is for words that may get lost with the connection.
func (c *card) say(text string) {
	if err := c.place.say(text); err != nil {
		c.place.server.o.Log.Debug("the client was not told", "error", err)
	}
}

// wasCancelledSince tells whether the client has cancelled since then.
func (p *place) wasCancelledSince(cancels int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving || p.cancels != cancels
}
