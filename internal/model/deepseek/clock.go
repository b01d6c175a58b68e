package deepseek

import (
	"context"
	"fmt"
	"time"

	"deepseek/internal/model"
)

// watch holds the clocks of one attempt. A clock that runs out cancels the
// attempt with an *model.Error as the cause, which unblocks whatever waits on
// the network. The timers only ever cancel; everything else is done by the
// goroutine that called Generate.
type watch struct {
	clocks  Clocks
	header  *time.Timer
	bytes   *time.Timer // runs while a read waits
	content *time.Timer
}

func startWatch(c Clocks, cancel context.CancelCauseFunc) *watch {
	expire := func(d time.Duration, what string) *time.Timer {
		return time.AfterFunc(d, func() {
			cancel(&model.Error{Code: model.CodeTimeout, Message: what})
		})
	}
	w := &watch{clocks: c}
	w.header = expire(c.Header, fmt.Sprintf("the server sent no response headers within %s", c.Header))
	w.bytes = expire(c.Byte, fmt.Sprintf("the server went silent for %s in the middle of its answer", c.Byte))
	w.content = expire(c.FirstContent, fmt.Sprintf("the server kept the connection open but sent no content for too long (%s before the first, %s after it)", c.FirstContent, c.Content))
	w.bytes.Stop()
	w.content.Stop()
	return w
}

// headers says that the response has begun.
func (w *watch) headers() {
	w.header.Stop()
	w.content.Reset(w.clocks.FirstContent)
}

// waiting and arrived stand around each read of the body, so that time spent
// elsewhere is not held against the server.
func (w *watch) waiting() { w.bytes.Reset(w.clocks.Byte) }
func (w *watch) arrived() { w.bytes.Stop() }

// progress says that content has arrived.
func (w *watch) progress() { w.content.Reset(w.clocks.Content) }

func (w *watch) stop() {
	w.header.Stop()
	w.bytes.Stop()
	w.content.Stop()
}
