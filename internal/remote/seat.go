package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// seat is one connection's place at one session: the claims it holds and what
// it is told. Its handlers are called one at a time; mu guards the claims, which
// end from other goroutines. ready, sub and agents are the handlers' and close's alone.
type seat struct {
	host Host
	id   string
	out  *outbox
	lim  limits
	info ServerInfo
	// presumed is the status that a subscriber takes for granted and is not told; "" = none.
	presumed string
	// afterAnswer has something done once the request in hand is answered.
	afterAnswer func(func())

	mu     sync.Mutex
	claims map[string]*held

	ready  bool // initialize was answered
	sub    *subscription
	agents subagents      // as the pages leave them that were read for the next subscription
	wg     sync.WaitGroup // the goroutines that watch claims
}

// held is a claim of this connection. It stays, ended, until it is let go, so
// that an outcome that comes too late is told from one without a claim.
type held struct {
	claim Claim
	stop  chan struct{} // closed when the claim is let go
	over  bool          // the end of the wait is told, or about to be; guarded by the seat's mu
}

func newSeat(host Host, out *outbox, lim limits, info ServerInfo, afterAnswer func(func())) *seat {
	return &seat{
		host: host, id: host.Header().ID, out: out, lim: lim, info: info,
		afterAnswer: afterAnswer, claims: map[string]*held{}, agents: subagents{},
	}
}

// note queues a notification. An error means that the connection is ending.
func (s *seat) note(method string, params any) error {
	line, err := notification(method, params)
	if err != nil {
		return err
	}
	return s.out.push(line)
}

// attach claims a wait for this connection. A connection has one claim on it,
// and is told once what is left.
func (s *seat) attach(_ context.Context, p *CallParams) (any, error) {
	s.mu.Lock()
	if h, again := s.claims[p.CallID]; again {
		defer s.mu.Unlock()
		return AttachResult{Attached: !h.over}, nil
	}
	s.mu.Unlock()
	claim, ok := s.host.Attach(p.CallID)
	if !ok {
		return AttachResult{}, nil
	}
	if permits(claim.Card().Kind) && !s.host.RemoteApprovals() {
		claim.Detach()
		return nil, refuse(CodeReadOnlyWait, "this is answered at the session's own terminal; "+
			"start the run with --answerer remote to answer it from elsewhere")
	}
	h := &held{claim: claim, stop: make(chan struct{})}
	s.mu.Lock()
	s.claims[p.CallID] = h
	s.mu.Unlock()
	s.afterAnswer(func() {
		remaining := int64(-1)
		if d := h.claim.Remaining(); d >= 0 {
			remaining = d.Milliseconds()
		}
		// A failure is the connection's, which then ends and lets go.
		_ = s.note(NoteWait, WaitNote{s.id, p.CallID, remaining})
		s.wg.Go(func() { s.watchEnd(p.CallID, h) })
	})
	return AttachResult{Attached: true}, nil
}

// permits tells whether an answer to the kind is a permission, which the owner's
// own terminal or client gives unless the host offers more.
func permits(k question.Kind) bool {
	return k == question.KindApproval || k == question.KindPlanReview
}

func (s *seat) watchEnd(callID string, h *held) {
	select {
	case e, ok := <-h.claim.Ended():
		if ok {
			s.mu.Lock()
			h.over = true
			s.mu.Unlock()
			// A failure is the connection's, which then ends and lets go.
			_ = s.note(NoteWaitEnded, WaitEndedNote{s.id, callID, e.Outcome, e.Mine})
		}
	case <-h.stop:
	}
}

func (s *seat) detach(_ context.Context, p *CallParams) (any, error) {
	s.mu.Lock()
	h := s.claims[p.CallID]
	delete(s.claims, p.CallID)
	s.mu.Unlock()
	if h != nil {
		close(h.stop)
		h.claim.Detach()
	}
	return Empty{}, nil
}

func (s *seat) respond(ctx context.Context, p *RespondParams) (any, error) {
	if (p.Answers == nil) == (p.Error == nil) {
		return nil, invalid("", "want either answers or error")
	}
	if e := p.Error; e != nil && e.Code != question.CodeTimedOut && e.Code != question.CodeCancelled {
		return nil, invalid("error.code", "must be %s or %s, is %q", question.CodeTimedOut, question.CodeCancelled, clip([]byte(e.Code)))
	}
	s.mu.Lock()
	h := s.claims[p.CallID]
	s.mu.Unlock()
	if h == nil {
		return nil, refuse(CodeNoClaim, "this connection holds no claim on %s; attach first", clip([]byte(p.CallID)))
	}
	var accepted bool
	var err error
	if p.Error != nil {
		accepted, err = h.claim.Reject(ctx, p.Error.Code)
	} else {
		accepted, err = h.claim.Respond(ctx, p.Answers)
	}
	if err != nil {
		return nil, err
	}
	return AcceptResult{accepted}, nil
}

// initialize is optional here, and sent once at most.
func (s *seat) initialize(context.Context, *InitializeParams) (any, error) {
	if s.ready {
		return nil, errInitialized
	}
	s.ready = true
	return InitializeResult{
		ServerInfo: s.info, ProtocolVersion: ProtocolVersion,
		Capabilities: ServerCapabilities{Questions: true, Approvals: s.host.RemoteApprovals()},
	}, nil
}

func (s *seat) prompt(ctx context.Context, p *MessageParams) (any, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	id, err := s.host.Prompt(ctx, content)
	if err != nil {
		return nil, err
	}
	return MessageResult{SessionID: s.id, MessageID: id}, nil
}

func (s *seat) steer(ctx context.Context, p *MessageParams) (any, error) {
	content, err := p.content()
	if err != nil {
		return nil, err
	}
	id, err := s.host.Steer(ctx, content)
	if err != nil {
		return nil, err
	}
	return MessageResult{MessageID: id}, nil
}

// content is the message that the parameters hold.
func (p *MessageParams) content() ([]session.Block, error) {
	if len(p.ContentBlocks) == 0 {
		return nil, invalid("contentBlocks", "must have at least 1 item, has 0")
	}
	var blocks []session.Block
	for i, b := range p.ContentBlocks {
		if b.Type != session.BlockText {
			return nil, invalid(fmt.Sprintf("contentBlocks[%d].type", i), "must be %q, is %q", session.BlockText, clip([]byte(b.Type)))
		}
		if b.Text == "" {
			return nil, invalid(fmt.Sprintf("contentBlocks[%d].text", i), "must not be empty")
		}
		blocks = append(blocks, session.Block{Type: b.Type, Text: b.Text})
	}
	if strings.TrimSpace(session.TextOf(blocks)) == "" {
		return nil, invalid("contentBlocks", "must not be white space alone")
	}
	return blocks, nil
}

func (s *seat) cancel(ctx context.Context, p *CancelParams) (any, error) {
	return Empty{}, s.host.Cancel(ctx, p.KeepInbox)
}

// read answers with a page of the log. The last page, the one without more
// behind it, begins or moves the subscription: notifications go on where it ends,
// and tell the end of the sub-agents that began in what was read.
func (s *seat) read(ctx context.Context, p *ReadParams) (any, error) {
	if p.FromSeq < 0 {
		return nil, invalid("fromSeq", "must be at least 0, is %d", p.FromSeq)
	}
	page, err := s.host.Read(ctx, int64(p.FromSeq), s.lim.page)
	if err != nil {
		return nil, err
	}
	if !page.More {
		s.unsubscribe()
		s.afterAnswer(func() { s.subscribe(ctx, page.NextSeq) })
	}
	for _, e := range page.Events {
		s.agents.note(s.id, e)
	}
	if page.Events == nil {
		page.Events = []rawEvent{}
	}
	return ReadResult{Header: s.host.Header(), Events: page.Events, NextSeq: page.NextSeq, More: page.More}, nil
}

func (s *seat) questions(ctx context.Context, _ *Ref) (any, error) {
	list, err := s.host.Questions(ctx)
	if err != nil {
		return nil, err
	}
	if list.Active == nil {
		list.Active = []ActiveQuestion{}
	}
	if list.Settled == nil {
		list.Settled = []SettledQuestion{}
	}
	if list.Waits == nil {
		list.Waits = []Wait{}
	}
	return list, nil
}

func (s *seat) answer(ctx context.Context, p *AnswerParams) (any, error) {
	accepted, err := s.host.Answer(ctx, p.CallID, p.Answers)
	if err != nil {
		return nil, err
	}
	return AcceptResult{accepted}, nil
}

func (s *seat) withdraw(ctx context.Context, p *CallParams) (any, error) {
	withdrawn, err := s.host.Withdraw(ctx, p.CallID)
	if err != nil {
		return nil, err
	}
	return WithdrawResult{withdrawn}, nil
}

// release lets all claims go. The ends of their waits that have come by then are told.
func (s *seat) release() {
	s.mu.Lock()
	claims := s.claims
	s.claims = map[string]*held{}
	s.mu.Unlock()
	for callID, h := range claims {
		select {
		case e, ok := <-h.claim.Ended():
			if ok {
				// A failure is the connection's, which is ending.
				_ = s.note(NoteWaitEnded, WaitEndedNote{s.id, callID, e.Outcome, e.Mine})
			}
		default:
		}
		close(h.stop)
		h.claim.Detach()
	}
	s.wg.Wait()
}

// close leaves the session. With catchUp a subscriber still gets what is on
// disk by now, for as long as ctx lasts.
func (s *seat) close(ctx context.Context, catchUp bool) error {
	s.release()
	sub := s.sub
	s.unsubscribe()
	if sub == nil || !catchUp {
		return nil
	}
	err := sub.catchUp(ctx)
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}
