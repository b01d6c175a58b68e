package question

import (
	"context"
	"sync"

	"deepseek/internal/session"
)

// Serve answers what the script has answers for, as a client like any other:
// it claims a wait and answers a batch of which every question matches. The
// others it leaves alone, approvals and plan reviews always. For what it
// answers there is somebody to ask.
//
// An entry whose answer does not fit the question that it matches is given to
// fail, from a goroutine of its own, once for each such card. So is an answer
// that could not be given. fail has to end the run with that error, since the
// card waits on, and must not call stop.
//
// stop returns when nothing of the script runs any more.
func (s *Script) Serve(service *Service, fail func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c := &scriptClient{script: s, service: service, fail: fail, ctx: ctx}
	withdraw := service.Provide(func(card Card) bool {
		_, ok, err := s.answer(card)
		return ok || err != nil // an entry that does not fit is told when the card opens
	})
	unwatch := service.Watch(c.see)
	return func() {
		unwatch()
		c.close()
		cancel()
		c.work.Wait()
		withdraw()
	}
}

// scriptClient is a script at work. mu owns closed, and that no work begins after it.
type scriptClient struct {
	script  *Script
	service *Service
	fail    func(error)
	ctx     context.Context

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

func (c *scriptClient) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// see claims at once, so that no clock runs while the answer is on its way.
func (c *scriptClient) see(ev Event) {
	if ev.Type != Opened {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	batch, ok, err := c.script.answer(ev.Card)
	if err != nil {
		c.work.Go(func() { c.fail(err) })
		return
	}
	if !ok {
		return
	}
	claim, ok := c.service.Attach(ev.Card.CallID)
	if !ok {
		return
	}
	c.work.Go(func() { c.respond(claim, batch) })
}

func (c *scriptClient) respond(claim *Claim, batch []session.Answer) {
	defer claim.Detach()
	if _, err := claim.Respond(c.ctx, batch); err != nil && c.ctx.Err() == nil {
		c.fail(err)
	}
}
