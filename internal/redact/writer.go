package redact

import (
	"io"
	"slices"
)

// Writer replaces the key in a stream, wherever the pieces are cut. It holds
// back no more than the end of the stream that could be the beginning of the
// key, until more arrives or Flush. For one goroutine at a time.
type Writer struct {
	key  Key
	to   io.Writer
	held []byte // shorter than the longest form
}

// Writer makes a stream that passes on to to what it is given, without the key.
func (k Key) Writer(to io.Writer) *Writer { return &Writer{key: k, to: to} }

// Write takes p whole, or fails with the error of the writer below.
func (w *Writer) Write(p []byte) (int, error) {
	if !w.key.Replaces() {
		return w.to.Write(p)
	}
	b := p
	if len(w.held) > 0 {
		b = slices.Concat(w.held, p)
		w.held = nil
	}
	s := search{forms: w.key.forms, in: b}
	for done := 0; done < len(b); {
		at, n := s.from(done)
		part := w.key.partial(b[done:])
		if at < 0 || part >= 0 && done+part <= at {
			// What begins first wins; a form that could grow longer is waited for.
			end := len(b)
			if part >= 0 {
				end = done + part
			}
			if err := w.pass(b[done:end]); err != nil {
				return 0, err
			}
			w.held = append([]byte(nil), b[end:]...)
			break
		}
		if err := w.pass(b[done:at]); err != nil {
			return 0, err
		}
		if err := w.pass([]byte(Mark)); err != nil {
			return 0, err
		}
		done = at + n
	}
	return len(p), nil
}

// Flush passes on what was held back. The stream may go on after it.
func (w *Writer) Flush() error {
	held := w.held
	w.held = nil
	return w.pass(w.key.Bytes(held))
}

func (w *Writer) pass(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	_, err := w.to.Write(b)
	return err
}
