package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// LineStream is a client on two files, line by line, for a protocol with a
// vocabulary of its own. What goes out waits in a bounded queue: a client that
// reads slowly is waited for, and one that does not read is given up.
//
// Next is for one goroutine; everything else is safe for concurrent use.
type LineStream struct {
	files   *fileStream
	in      *lineReader
	out     *outbox
	lim     limits
	written chan struct{} // closed when the writing goroutine has ended
	failed  error         // its error, once written is closed
}

// NewLineStream begins to read and write. Lines that come in may have so many
// bytes. The caller owes Close, and nobody else uses the files until then.
func NewLineStream(in, out *os.File, longest int) (*LineStream, error) {
	lim := stdioLimits
	lim.line = longest
	return newLineStream(in, out, lim)
}

func newLineStream(in, out *os.File, lim limits) (*LineStream, error) {
	files, err := newFileStream(in, out)
	if err != nil {
		return nil, err
	}
	s := &LineStream{files: files, in: newLineReader(files, lim, false), lim: lim, written: make(chan struct{})}
	s.out = newOutbox(lim, func() {
		// The reason may still get through to a client that begins to read.
		_ = files.SetWriteDeadline(time.Now().Add(time.Second)) // fails only where the stream has ended
	})
	go s.in.run()
	go func() {
		defer close(s.written)
		s.failed = s.out.run(files)
		if s.failed != nil || s.out.dropped() != nil {
			s.out.finish() // nobody hears anything any more: whoever writes is told
			s.in.stop()
		}
	}()
	return s, nil
}

// Next is the next line without its end. tooLong is a line that went beyond the
// limit and was skipped; then line is its beginning (see RequestID). io.EOF: no more come.
func (s *LineStream) Next() (line []byte, tooLong bool, err error) {
	for {
		l, ok, over := s.in.take()
		switch {
		case ok:
			return l.text, l.tooLong, nil
		case over != nil:
			return nil, false, io.EOF
		}
		<-s.in.more
	}
}

// Write queues one line, whose end it adds if need be. It takes the line over
// and waits while the client is far behind. After an error none is queued any more.
func (s *LineStream) Write(line []byte) (int, error) {
	n := len(line)
	if err := s.out.pushWait(context.Background(), bytes.TrimSuffix(line, []byte("\n"))); err != nil { // the queue's own limit bounds it
		return 0, err
	}
	return n, nil
}

// Stop ends the input. What was read by then is still handed out.
func (s *LineStream) Stop() { s.in.stop() }

// Close writes what is queued, for a limited time, and ends the reading and the
// writing. The files stay open. The error says why the client was given up, or
// what could not be written.
func (s *LineStream) Close() error {
	s.out.finish()
	deadline := s.files.SetWriteDeadline(time.Now().Add(s.lim.flush))
	<-s.written
	s.in.stop()
	<-s.in.done
	return errors.Join(s.out.unread(s.failed), s.out.dropped(), deadline, s.files.release())
}
