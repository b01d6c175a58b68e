package acp

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// wire is the SDK's writer. It counts the answers that are owed to the client,
// and notes under which id a question went out: the SDK keeps that to itself,
// and to cancel a request one must name it.
//
// mu guards all but out; it is not held while writing.
type wire struct {
	out io.Writer // takes whole lines, from several goroutines

	mu      sync.Mutex
	owed    int
	settled chan struct{} // closed when nothing is owed; nil: nobody waits
	asks    map[int64]chan<- json.RawMessage
	lastAsk int64
}

func newWire(out io.Writer) *wire {
	return &wire{out: out, asks: map[int64]chan<- json.RawMessage{}}
}

// askMeta marks a question that goes out.
const askMeta = "deepseek/ask"

var withID = []byte(`{"jsonrpc":"2.0","id":`)

// outgoing is what the wire needs to know of a message.
type outgoing struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Meta map[string]int64 `json:"_meta"`
	} `json:"params"`
}

func (w *wire) Write(line []byte) (int, error) {
	answers := false
	if bytes.HasPrefix(line, withID) {
		answers = w.note(line)
	}
	n, err := w.out.Write(line)
	if answers {
		w.paid()
	}
	return n, err
}

// note tells whether the line is an answer. If it asks, it notes the id.
func (w *wire) note(line []byte) (answer bool) {
	var head struct {
		Method *string `json:"method"`
	}
	if json.Unmarshal(line, &head) != nil || head.Method == nil {
		return true
	}
	var m outgoing
	if json.Unmarshal(line, &m) == nil {
		if ask, ok := m.Params.Meta[askMeta]; ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			if sent := w.asks[ask]; sent != nil {
				sent <- bytes.Clone(m.ID)
				delete(w.asks, ask)
			}
		}
	}
	return false
}

// ask is a mark for a question that is about to go out, and where its id will be
// once it does.
func (w *wire) ask() (mark int64, sent <-chan json.RawMessage) {
	id := make(chan json.RawMessage, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastAsk++
	w.asks[w.lastAsk] = id
	return w.lastAsk, id
}

// owe says that a request came in.
func (w *wire) owe() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed++
}

func (w *wire) paid() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.owed--
	if w.owed == 0 && w.settled != nil {
		close(w.settled)
		w.settled = nil
	}
}

// square is closed when every request that came in has its answer in the queue.
func (w *wire) square() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled == nil {
		w.settled = make(chan struct{})
	}
	done := w.settled
	if w.owed == 0 {
		close(w.settled)
		w.settled = nil
	}
	return done
}

// refuse answers a message that never reaches a handler.
func (w *wire) refuse(id json.RawMessage, e *sdk.RequestError) error {
	if id == nil {
		id = json.RawMessage("null")
	}
	line, err := json.Marshal(struct {
		JSONRPC string            `json:"jsonrpc"`
		ID      json.RawMessage   `json:"id"`
		Error   *sdk.RequestError `json:"error"`
	}{"2.0", id, e})
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(line, '\n'))
	return err
}
