package cli

import (
	"context"
	"strings"

	"deepseek/internal/engine"
	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// deltas takes the key out of streamed text, where it may be cut between two
// pieces: the beginning of what may become the key is kept back until the next
// piece, or the event that ends the text, shows what it is. One goroutine's.
type deltas struct {
	key  redact.Key
	last engine.Delta // the place of what is kept back
	out  strings.Builder
	w    *redact.Writer
}

func newDeltas(key redact.Key) *deltas {
	d := &deltas{key: key}
	d.w = key.Writer(&d.out)
	return d
}

// take returns the text that may be shown now, before the item itself.
func (d *deltas) take(it engine.FeedItem) []engine.Delta {
	next := it.Delta
	if !d.key.Replaces() {
		if next == nil {
			return nil
		}
		return []engine.Delta{*next}
	}
	var shown []engine.Delta
	if next == nil || next.Kind != d.last.Kind {
		_ = d.w.Flush() // to memory: never fails
		shown = d.shown(shown)
	}
	if next != nil {
		d.last = *next
		_, _ = d.w.Write([]byte(next.Text)) // to memory: never fails
		shown = d.shown(shown)
	}
	return shown
}

func (d *deltas) shown(list []engine.Delta) []engine.Delta {
	if d.out.Len() == 0 {
		return list
	}
	one := d.last
	one.Text = d.out.String()
	d.out.Reset()
	return append(list, one)
}

// watcher is somebody who follows a run: the screen, or stdout in stream-json.
type watcher interface {
	event(l engine.Line)
	status(s engine.Status)
	delta(d engine.Delta)
}

// pump hands the feed to a watcher. It is one goroutine, ended by stop.
type pump struct {
	feed  *engine.Feed
	marks chan struct{}
	stop  context.CancelFunc
	done  chan error
}

func (o *owner) startPump(fromSeq int64, w watcher, streams bool) (*pump, error) {
	f, err := o.agent.Subscribe(fromSeq, streams)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &pump{feed: f, marks: make(chan struct{}, 1), stop: stop, done: make(chan error, 1)}
	go func() { p.done <- p.run(ctx, w, newDeltas(o.key)) }()
	return p, nil
}

func (p *pump) run(ctx context.Context, w watcher, texts *deltas) error {
	for {
		it, err := p.feed.Next(ctx)
		if err != nil {
			return err
		}
		for _, d := range texts.take(it) {
			w.delta(d)
		}
		for _, l := range it.Lines {
			w.event(l)
		}
		if it.Status != "" {
			w.status(it.Status)
		}
		if it.Mark {
			p.marks <- struct{}{}
		}
	}
}

// drain returns when the watcher has been told everything that has happened.
// An error is the log's, and the run's own.
func (p *pump) drain() error {
	p.feed.Mark()
	select {
	case <-p.marks:
		return nil
	case err := <-p.done:
		p.done <- err
		return err
	}
}

// close ends the goroutine.
func (p *pump) close() error {
	p.stop()
	p.wait()
	return p.feed.Close()
}

// wait returns when the goroutine has ended. That it was stopped is no news, and
// what else went wrong is the log's: the run has said it.
func (p *pump) wait() {
	for range p.done {
		return
	}
}

// decodeLine reads a durable line as an event.
func decodeLine(l engine.Line) (session.Event, error) {
	return logstore.Line{Seq: l.Seq, Type: l.Type, Raw: l.Raw}.Event()
}
