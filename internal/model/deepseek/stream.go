package deepseek

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/tmaxmax/go-sse"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// maxEvent bounds one event; a file that a model writes in one piece fits.
const maxEvent = 64 << 20

const (
	eventDone  = "[DONE]"
	eventError = "error"
)

// stream reads the answer of one attempt. It is for one goroutine.
type stream struct {
	adapter *Adapter
	sink    func(model.Delta)
	watch   *watch
	body    *lineReader

	text, reasoning channel
	calls           assembler
	finish          string
	usage           *session.Usage // the last one counts
	events          int
}

// channel is one of the two texts of an answer.
type channel struct {
	all  strings.Builder
	join joiner
}

// read returns the answer once [DONE] has come. The caller's ctx ended: what
// had arrived, and its error. Anything else is an *model.Error.
func (s *stream) read(ctx, attempt context.Context) (model.Response, error) {
	// When the body has ended, the event at hand may be the cut last one; it is
	// held back until it is known whether another follows.
	var held *sse.Event
	for event, err := range sse.Read(s.body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return s.broken(ctx, attempt, err)
		}
		// The parser goes on handing out what it has buffered.
		if attempt.Err() != nil {
			return s.broken(ctx, attempt, attempt.Err())
		}
		now := &event
		if s.body.ended() {
			now, held = held, now
		}
		if now != nil {
			if done, err := s.event(*now, false); done || err != nil {
				return s.outcome(err)
			}
		}
	}
	if held != nil {
		if done, err := s.event(*held, s.body.cut()); done || err != nil {
			return s.outcome(err)
		}
	}
	return s.broken(ctx, attempt, io.EOF)
}

// event handles one event of the stream and tells whether it was the last. Of
// an event that was cut off, what cannot be read is the end of the stream.
func (s *stream) event(event sse.Event, cut bool) (done bool, err error) {
	for _, data := range pieces(event.Data) {
		s.events++
		if data == eventDone {
			return true, nil
		}
		c, err := decode(data)
		switch {
		case err == nil && c.failure != nil:
			return false, s.adapter.streamError(*c.failure)
		case err != nil && cut:
			return false, s.closed()
		case event.Type == eventError, err != nil && data[0] != '{':
			// Plain words where a chunk should be.
			return false, s.adapter.streamError(serverError{message: asWords(data)})
		case err != nil:
			return false, &model.Error{Code: model.CodeMalformed, Message: s.adapter.clean(fmt.Sprintf("a piece of the answer cannot be read: %v: %s", session.PlainJSON(err), data))}
		}
		s.take(c)
	}
	return false, nil
}

// pieces are the chunks of an event: one, spread over the event's lines in any
// way, or one a line where a server leaves out the blank lines between events.
func pieces(data string) []string {
	data = strings.TrimSpace(data)
	if data == "" {
		return nil
	}
	whole := []string{data}
	if !strings.Contains(data, "\n") || json.Valid([]byte(data)) {
		return whole
	}
	var lines []string
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		if line != eventDone && !json.Valid([]byte(line)) {
			return whole
		}
		lines = append(lines, line)
	}
	return lines
}

// take adds a chunk to the answer.
func (s *stream) take(c chunk) {
	if c.usage != nil {
		s.usage = c.usage
	}
	if c.content != "" || c.reasoning != "" || len(c.calls) > 0 {
		s.watch.progress()
	}
	s.say(&s.reasoning, session.BlockReasoning, c.reasoning)
	s.say(&s.text, session.BlockText, c.content)
	s.calls.add(c.calls)
	s.finish = stricter(s.finish, c.finish)
}

func (s *stream) say(ch *channel, kind, fragment string) {
	if fragment != "" {
		s.emit(ch, kind, ch.join.add(fragment))
	}
}

func (s *stream) emit(ch *channel, kind, text string) {
	if text == "" {
		return
	}
	ch.all.WriteString(text)
	if s.sink != nil {
		s.sink(model.Delta{Kind: kind, Text: text})
	}
}

// partial is what has arrived, without calls.
func (s *stream) partial() model.Response {
	s.emit(&s.reasoning, session.BlockReasoning, s.reasoning.join.end())
	s.emit(&s.text, session.BlockText, s.text.join.end())
	return model.Response{Text: s.text.all.String(), Reasoning: s.reasoning.all.String(), Usage: s.usage}
}

// outcome judges an answer that ended with [DONE], unless it ended with err.
func (s *stream) outcome(err error) (model.Response, error) {
	if err != nil {
		return model.Response{}, err
	}
	out := s.partial()
	calls := s.calls.finish()
	switch s.finish {
	case "stop", "tool_calls":
		out.Finish = model.FinishStop
		if len(calls) > 0 { // whatever the server calls it
			out.Finish, out.Calls = model.FinishToolCalls, calls
		} else if out.Text == "" {
			return model.Response{}, &model.Error{Code: model.CodeEmptyResponse, Message: "the model stopped without text and without a tool call"}
		}
	case "length":
		out.Finish = model.FinishLength
	case "":
		return model.Response{}, &model.Error{Code: model.CodeMalformed, Message: "the stream ended with [DONE] but never said why the model stopped"}
	default:
		word := s.adapter.clean(s.finish)
		return model.Response{}, &model.Error{Code: word, Message: finishMessage(word)}
	}
	return out, nil
}

func finishMessage(word string) string {
	switch word {
	case "content_filter":
		return "the server's content filter stopped the answer"
	case "insufficient_system_resource":
		return "the server ran out of resources in the middle of the answer; try again later"
	}
	return "the server ended the answer with a reason that this program does not know: " + word
}

// broken judges a stream that stopped before [DONE].
func (s *stream) broken(ctx, attempt context.Context, err error) (model.Response, error) {
	if cause := ctx.Err(); cause != nil {
		return s.partial(), cause
	}
	switch {
	case attempt.Err() != nil:
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // between two pieces of the body, or within one
		return model.Response{}, s.closed()
	case errors.Is(err, bufio.ErrTooLong):
		return model.Response{}, &model.Error{Code: model.CodeMalformed, Message: fmt.Sprintf("a piece of the answer is longer than the limit of %d bytes", maxEvent)}
	}
	return model.Response{}, s.adapter.failure(ctx, attempt, err, "the answer broke off")
}

// closed words a body that came to a clean end without [DONE].
func (s *stream) closed() error {
	a := s.adapter
	words := asWords(s.body.words(s.events == 0))
	if words == "" {
		return &model.Error{Code: model.CodeStreamClosed, Message: "the server closed the stream before the end of the answer"}
	}
	if e, ok := readServerError([]byte(words)); ok {
		return a.streamError(e)
	}
	if s.events == 0 {
		switch {
		case isPage(words):
			return &model.Error{Code: model.CodeMalformed, Message: a.clean("the server sent " + pageTitle(words) + ". Check the base URL, or what stands between here and the server.")}
		case words[0] == '{' || words[0] == '[':
			return &model.Error{Code: model.CodeMalformed, Message: a.clean("the server sent JSON instead of a stream of events: " + words)}
		}
	}
	return a.streamError(serverError{message: words})
}

// streamError words an error that came with status 200.
func (a *Adapter) streamError(e serverError) *model.Error {
	return &model.Error{Code: e.code(0), Message: a.clean(e.message)}
}

// failure words an error of the transport or of a clock.
func (a *Adapter) failure(ctx, attempt context.Context, err error, what string) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	var timeout *model.Error
	if errors.As(context.Cause(attempt), &timeout) {
		return timeout
	}
	var refused *model.Error // by the proxy
	if errors.As(err, &refused) {
		refused.Message = a.clean(refused.Message)
		return refused
	}
	return &model.Error{Code: model.CodeTransport, Message: a.clean(what + ": " + innermost(err).Error())}
}

// innermost drops the URL that net/http puts in front: it may hold a password.
func innermost(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
