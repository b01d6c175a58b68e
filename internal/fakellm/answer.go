package fakellm

import (
	"io"
	"net"
	"net/http"
	"time"
)

type connKey struct{}

// answer sends one step. It is for the goroutine of its request.
type answer struct {
	server   *Server
	step     Step
	w        http.ResponseWriter
	r        *http.Request
	released <-chan struct{}
	sent     int // bytes of the body
	held     bool
}

func (a *answer) send(n int) {
	if !a.sleep(a.step.FirstDelay) || a.step.HoldAt == 0 && !a.hold() {
		return
	}
	for k, v := range a.step.Headers {
		a.w.Header().Set(k, v)
	}
	if s := a.step.Status; s != 0 && s != http.StatusOK {
		if a.w.Header().Get("Content-Type") == "" {
			a.w.Header().Set("Content-Type", "application/json")
		}
		a.w.WriteHeader(s)
		_, _ = io.WriteString(a.w, a.step.Body) // the client may have gone
		return
	}
	if a.w.Header().Get("Content-Type") == "" {
		a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	a.w.WriteHeader(http.StatusOK)
	if a.flush() != nil {
		return
	}
	for i, piece := range a.step.pieces(n) {
		if i > 0 && !a.sleep(a.step.Delay) || !a.piece(piece) {
			return
		}
	}
	if a.step.Cut != "" {
		a.cut()
	}
}

// piece sends bytes up to where the answer holds or is cut, and tells whether
// it goes on.
func (a *answer) piece(p string) bool {
	for p != "" {
		next := len(p)
		if a.step.Hold && !a.held && a.step.HoldAt > 0 {
			next = min(next, a.step.HoldAt-a.sent)
		}
		if a.step.Cut != "" {
			next = min(next, max(0, a.step.CutAt-a.sent))
		}
		if _, err := io.WriteString(a.w, p[:next]); err != nil || a.flush() != nil {
			return false
		}
		a.sent += next
		p = p[next:]
		if a.step.Cut != "" && a.sent >= a.step.CutAt {
			a.cut()
			return false
		}
		if a.step.HoldAt > 0 && a.sent >= a.step.HoldAt && !a.hold() {
			return false
		}
	}
	return true
}

func (a *answer) flush() error { return http.NewResponseController(a.w).Flush() }

// hold waits for a Release, once, if the step asks for it. It tells whether the
// answer goes on; when the server closes it does not return.
func (a *answer) hold() bool {
	if !a.step.Hold || a.held {
		return true
	}
	a.held = true
	select {
	case <-a.released:
		return true
	case <-a.server.done:
		panic(http.ErrAbortHandler) // or the answer would look whole
	case <-a.r.Context().Done():
	}
	return false
}

func (a *answer) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.server.done:
		panic(http.ErrAbortHandler) // or the answer would look whole
	case <-a.r.Context().Done():
	}
	return false
}

// cut ends the answer as the step says. It may not return.
func (a *answer) cut() {
	if a.step.Cut == CutEnd {
		return
	}
	if c, ok := a.r.Context().Value(connKey{}).(*net.TCPConn); ok && a.step.Cut == CutReset {
		_ = c.SetLinger(0) // fails only on a connection that is gone
	}
	panic(http.ErrAbortHandler) // net/http's way to close in the middle of a body
}
