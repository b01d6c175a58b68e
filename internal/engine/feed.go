package engine

import (
	"context"
	"errors"
	"io"
	"sync"
)

// FeedItem is one thing that a subscriber is told: a batch of durable lines, a
// status, a piece of streamed text, or the mark that it set itself. Just one of
// its fields is set.
type FeedItem struct {
	Lines  []Line
	Status Status
	Delta  *Delta
	Mark   bool
}

// Delta is streamed text that is not committed yet.
type Delta struct {
	Turn, Step int
	Kind       string // session.BlockText or session.BlockReasoning
	Text       string
}

// Feed tells one subscriber what happens, in order: every event once it is on
// disk, without gaps, read from the log itself, and between them the status
// and the text as it streams. A slow subscriber costs the agent nothing: lines
// stay in the file, deltas that wait are joined, and past maxDelta bytes dropped.
//
// Next is for one goroutine. The queue belongs to mu.
type Feed struct {
	agent  *Agent
	cursor Cursor
	deltas bool   // streamed text is wanted
	next   int64  // seq of the next line to hand out
	rest   []Line // read and not handed out: beyond an item that goes first

	mu    sync.Mutex
	queue []queued
	size  int                // bytes of the deltas that wait
	wake  context.CancelFunc // ends a Next that waits for lines
}

// queued is an item that follows the lines below seq after.
type queued struct {
	after int64
	item  FeedItem
}

const maxDelta = 4 << 20

// Subscribe begins a feed at a seq, with or without text as it streams. The
// status as it stands comes first.
func (a *Agent) Subscribe(fromSeq int64, deltas bool) (*Feed, error) {
	c, err := a.log.Follow(fromSeq)
	if err != nil {
		return nil, err
	}
	f := &Feed{agent: a, cursor: c, deltas: deltas, next: fromSeq}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.feeds[f] = struct{}{}
	f.push(FeedItem{Status: a.status}, fromSeq)
	return f, nil
}

// Mark queues a mark behind everything that has happened so far: when Next
// returns it, the subscriber has been told all of that. What was appended must
// be on its way to the disk.
func (f *Feed) Mark() {
	f.agent.mu.Lock()
	defer f.agent.mu.Unlock()
	f.push(FeedItem{Mark: true}, f.agent.state.Next)
}

// Close ends the feed.
func (f *Feed) Close() error {
	f.agent.mu.Lock()
	delete(f.agent.feeds, f)
	f.agent.mu.Unlock()
	return f.cursor.Close()
}

// push is called with the agent's lock held; it never blocks.
func (f *Feed) push(it FeedItem, after int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := it.Delta; d != nil {
		if !f.deltas {
			return
		}
		if f.size+len(d.Text) > maxDelta {
			return
		}
		f.size += len(d.Text)
		if n := len(f.queue); n > 0 {
			last := &f.queue[n-1]
			if l := last.item.Delta; l != nil && last.after == after && l.Kind == d.Kind {
				l.Text += d.Text
				return
			}
		}
	}
	f.queue = append(f.queue, queued{after, it})
	if f.wake != nil {
		f.wake()
	}
}

// Next returns what comes next. It ends with io.EOF after the last line of a closed log.
func (f *Feed) Next(ctx context.Context) (FeedItem, error) {
	for {
		waiting, cancel := context.WithCancel(ctx)
		it, limit, ok := f.head(cancel)
		switch {
		case ok:
			cancel()
			return it, nil
		case len(f.rest) > 0:
			cancel()
			return FeedItem{Lines: f.take(limit)}, nil
		}
		lines, err := f.cursor.Next(waiting)
		woken := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		// What was queued before these lines were appended is queued by now, so
		// the next turn of the loop sees it before it hands them out.
		f.rest = lines
		if err != nil && (!woken || errors.Is(err, io.EOF)) {
			return FeedItem{}, err
		}
	}
}

// head takes the first item if all lines before it have been handed out. Else
// it returns below which seq lines come first (-1 = no limit); while nothing is
// queued the next push calls wake.
func (f *Feed) head(wake context.CancelFunc) (FeedItem, int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wake = nil
	if len(f.queue) == 0 {
		f.wake = wake
		return FeedItem{}, -1, false
	}
	q := f.queue[0]
	if q.after > f.next {
		return FeedItem{}, q.after, false
	}
	f.queue = f.queue[1:]
	if q.item.Delta != nil {
		f.size -= len(q.item.Delta.Text)
	}
	return q.item, 0, true
}

// take hands out the lines that were read, those below limit only unless it is -1.
func (f *Feed) take(limit int64) []Line {
	n := len(f.rest)
	if limit >= 0 {
		n = 0
		for n < len(f.rest) && f.rest[n].Seq < limit {
			n++
		}
	}
	out := f.rest[:n]
	f.rest = f.rest[n:]
	f.next = out[n-1].Seq + 1
	return out
}
