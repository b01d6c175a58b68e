package engine

import (
	"context"
	"errors"
	"io"
	"sync"
)

// FeedItem is one thing that a subscriber is told: a batch of durable lines, a
// status, or a piece of streamed text. Just one of its fields is set.
type FeedItem struct {
	Lines  []Line
	Status Status
	Delta  *Delta
}

// Delta is streamed text that is not committed yet.
type Delta struct {
	Turn, Step int
	Kind       string
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

// Subscribe begins a feed at a seq. The status as it stands comes first.
func (a *Agent) Subscribe(fromSeq int64) (*Feed, error) {
	c, err := a.log.Follow(fromSeq)
	if err != nil {
		return nil, err
	}
	f := &Feed{agent: a, cursor: c, next: fromSeq}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.feeds[f] = struct{}{}
	f.push(FeedItem{Status: a.status}, fromSeq)
	return f, nil
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
		if ok {
			cancel()
			return it, nil
		}
		lines, err := f.lines(waiting, limit)
		woken := waiting.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			return FeedItem{Lines: lines}, nil
		case woken && !errors.Is(err, io.EOF):
			continue // an item was queued meanwhile
		default:
			return FeedItem{}, err
		}
	}
}

// head takes the first item if all lines before it have been handed out.
// Else it returns up to where lines come first (-1 = no limit), and from then
// on a push calls wake unless there is such a limit.
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

// lines returns the next lines, those below limit only if it is not -1.
func (f *Feed) lines(ctx context.Context, limit int64) ([]Line, error) {
	if len(f.rest) == 0 {
		lines, err := f.cursor.Next(ctx)
		if err != nil {
			return nil, err
		}
		f.rest = lines
	}
	out := f.rest
	if limit >= 0 {
		for i, l := range out {
			if l.Seq >= limit {
				out = out[:i]
				break
			}
		}
	}
	f.rest = f.rest[len(out):]
	if len(out) > 0 {
		f.next = out[len(out)-1].Seq + 1
	}
	return out, nil
}
