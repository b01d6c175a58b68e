package engine

import (
	"context"

	"deepseek/internal/session"
)

// Followup queues a message for a turn of its own and wakes the agent. It
// returns the message's id once the receipt is on disk.
func (a *Agent) Followup(ctx context.Context, content []session.Block, src session.Source) (string, error) {
	return a.enqueue(ctx, session.NextTurn, true, a.message(content, src))
}

// Steer queues a message for the next step and wakes the agent. It returns the
// message's id once the receipt is on disk.
func (a *Agent) Steer(ctx context.Context, content []session.Block, src session.Source) (string, error) {
	return a.enqueue(ctx, session.NextStep, true, a.message(content, src))
}

// Inject queues a message for the next step, whenever that comes. It returns
// the message's id once the receipt is on disk.
func (a *Agent) Inject(ctx context.Context, content []session.Block, src session.Source) (string, error) {
	return a.Queue(ctx, session.NextStep, content, src)
}

// Queue appends a message to a list and wakes nobody. It returns the message's
// id once the receipt is on disk.
func (a *Agent) Queue(ctx context.Context, target string, content []session.Block, src session.Source) (string, error) {
	return a.enqueue(ctx, target, false, a.message(content, src))
}

// SteerIf steers the text that decide returns. decide sees the state under the
// inbox lock, so that what it found still holds when the message is queued; it
// must not block. Its error is returned as it is, and then nothing was written.
func (a *Agent) SteerIf(ctx context.Context, src session.Source, decide func(*session.State) (string, error)) (string, error) {
	a.mu.Lock()
	text, err := decide(&a.state)
	if err != nil {
		a.mu.Unlock()
		return "", err
	}
	m := a.message([]session.Block{{Type: session.BlockText, Text: text}}, src)
	err = a.insert(session.NextStep, true, m)
	a.mu.Unlock()
	return a.receipt(ctx, m.ID, err)
}

// DiscardIf takes the queued message that decide names out of the inbox. The
// rules of decide are SteerIf's. A message that is no longer queued is false.
func (a *Agent) DiscardIf(ctx context.Context, decide func(*session.State) (id string, err error)) (bool, error) {
	a.mu.Lock()
	id, err := decide(&a.state)
	if err != nil {
		a.mu.Unlock()
		return false, err
	}
	splice, ok := a.state.Inbox.Discard(id)
	if ok {
		if a.leaving {
			err = ErrLeaving
		} else {
			err = a.put(item{session.TypeInboxSpliced, splice})
		}
	}
	a.mu.Unlock()
	if err != nil || !ok {
		return false, err
	}
	return true, a.sync(ctx)
}

func (a *Agent) message(content []session.Block, src session.Source) session.UserMessage {
	return session.UserMessage{ID: a.opts.NewID(), Role: "user", Content: content, Source: src}
}

func (a *Agent) enqueue(ctx context.Context, target string, wake bool, m session.UserMessage) (string, error) {
	a.mu.Lock()
	err := a.insert(target, wake, m)
	a.mu.Unlock()
	return a.receipt(ctx, m.ID, err)
}

// insert appends the receipt and wakes. The caller holds mu.
func (a *Agent) insert(target string, wake bool, m session.UserMessage) error {
	if a.leaving {
		return ErrLeaving
	}
	if err := a.put(item{session.TypeInboxSpliced, a.state.Inbox.Insert(target, m)}); err != nil {
		return err
	}
	if wake {
		a.wake()
	}
	return nil
}

// receipt waits for the disk. The message is queued even if ctx ends first;
// only then the caller cannot know.
func (a *Agent) receipt(ctx context.Context, id string, err error) (string, error) {
	if err == nil {
		err = a.sync(ctx)
	}
	if err != nil {
		return "", err
	}
	return id, nil
}
