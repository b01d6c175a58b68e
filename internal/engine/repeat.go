package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// repeats counts how often a call failed again in the same way: same tool, same
// arguments, same error. It lives as long as the agent. The zero value is ready;
// it is safe for concurrent use, mu guards the counts.
type repeats struct {
	mu     sync.Mutex
	counts map[[sha256.Size]byte]failures // by tool and arguments
}

// failures are those in a row of one call.
type failures struct {
	how [sha256.Size]byte // code and text
	n   int
}

// note returns the result of a call with, at the 3rd, 5th and 8th failure of the
// same kind, a remark for the model at its end. A success or another error
// begins anew. What a cancel or a question left undone is no failure of the call.
func (r *repeats) note(name, arguments string, res tool.Result) tool.Result {
	switch res.Code {
	case tool.CodeAborted, session.CodeAbortedBefore, session.CodeAskAborted, CodeNotStartedPending:
		return res
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	call := sha256.Sum256([]byte(name + "\x00" + plain(arguments)))
	if res.Code == "" {
		delete(r.counts, call)
		return res
	}
	how := sha256.Sum256([]byte(res.Code + "\x00" + res.Content))
	f := r.counts[call]
	if f.how != how {
		f = failures{how: how}
	}
	f.n++
	if r.counts == nil {
		r.counts = map[[sha256.Size]byte]failures{}
	}
	r.counts[call] = f
	if word := map[int]string{3: "3rd", 5: "5th", 8: "8th"}[f.n]; word != "" {
		res.Content += fmt.Sprintf("\n[This is the %s time that this call of %s, with these arguments, failed with this error. It will not work as it is: change the call, take another way, or tell the user what is in the way.]", word, name)
	}
	return res
}

// plain is JSON without white space between its parts; other text is as it is.
func plain(arguments string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(arguments)) != nil {
		return arguments
	}
	return b.String()
}
