package engine

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

// Shares of the context window, in hundredths.
const (
	fullShare   = 80 // from this size on the history is compacted
	tailShare   = 16 // what stays verbatim
	unseenShare = 95 // what results that the model has not seen may take, whatever the tail is
	worthShare  = 10 // what a summary must at least cover to be worth a request
	growthShare = 5  // by how much the history grows before a failed compaction is tried again
)

// occasion is why a history is compacted.
type occasion int

const (
	nearFull  occasion = iota // it comes near the window
	overLimit                 // a server found it too long, whatever the window was thought to be
)

// Codes of a compaction that failed without an error of the model.
const (
	codeEmptySummary = "EMPTY_SUMMARY"
	codeLongSummary  = "SUMMARY_TOO_LONG"
	codeCutSummary   = "SUMMARY_CUT"
)

// summaryTokens is the least limit of a summary, in tokens: a limit that is meant
// for answers could cut it.
const summaryTokens = 8192

//go:embed summary.md
var summaryRequest string

// makeRoom compacts the history if it comes near the context window. That it
// could not be compacted is no error: the request is sent all the same.
func (a *Agent) makeRoom(ctx context.Context, r sending) error {
	a.mu.Lock()
	window, size, weight := int64(a.opts.Window), a.size(), a.state.History.Weight()
	a.mu.Unlock()
	if window <= 0 || size < window*fullShare/100 || weight < a.roomyTo {
		return nil
	}
	_, err := a.compact(ctx, r, nearFull)
	return err
}

// size is the size of the next request in tokens. The caller holds mu.
func (a *Agent) size() int64 {
	size, counted := a.state.History.Size()
	if !counted {
		size += a.headerSize()
	}
	return size
}

// headerSize is the size of what stands before the messages. The caller holds mu.
func (a *Agent) headerSize() int64 { return int64(session.Tokens(string(a.state.LastHeader))) }

// compact leaves out long results and puts a summary in the place of all but the
// end of the history. What no model has seen yet stays, as far as it fits: what is
// asked for again and again would never end. It tells whether the history is shorter now, which it may
// be without a summary too. An error is the log's, or the end of ctx.
func (a *Agent) compact(ctx context.Context, r sending, why occasion) (shorter bool, err error) {
	a.mu.Lock()
	before, size := a.state.History.Weight(), a.size()
	cut, err := a.begin(r, why, size)
	shorter = a.state.History.Weight() < before
	if err != nil || cut.Messages == 0 {
		a.waitForGrowth()
		a.mu.Unlock()
		return shorter, err
	}
	a.mu.Unlock()
	ask := r
	ask.sink = func(model.Delta) {} // nobody's answer
	if limit := &ask.body.Config.MaxTokens; *limit > 0 {
		*limit = max(*limit, summaryTokens)
	}
	ask.shape = func(history []session.Message) []session.Message {
		if why == overLimit || size > int64(a.opts.Window) { // the whole does not fit
			history = history[:cut.Messages]
		}
		return append(slices.Clip(history), session.Message{Role: session.RoleUser, Text: strings.TrimSpace(summaryRequest)})
	}
	resp, err := a.send(ctx, ask)

	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure != nil {
		return false, a.failure
	}
	if ctx.Err() != nil {
		failed := session.CompactionEnd{Error: &session.ErrorInfo{Code: session.CodeInterrupted, Message: "the turn was cancelled"}, Usage: a.priced(resp.Usage)}
		if err := a.put(item{session.TypeCompactionEnd, failed}); err != nil {
			return false, err
		}
		return false, context.Cause(ctx)
	}
	a.roomyTo = 0
	problem := problemOf(err)
	if problem == nil {
		problem, err = a.replace(cut, resp)
		if err != nil {
			return false, err
		}
	}
	if problem != nil {
		a.waitForGrowth()
		if err := a.put(item{session.TypeCompactionEnd, session.CompactionEnd{Error: problem, Usage: a.priced(resp.Usage)}}); err != nil {
			return false, err
		}
	}
	return a.state.History.Weight() < before, nil
}

// waitForGrowth keeps a compaction that brought no summary from being tried at
// every step. Growth is that of the estimate: what a server counts next is another
// measure. The caller holds mu.
func (a *Agent) waitForGrowth() {
	a.roomyTo = a.state.History.Weight() + int64(a.opts.Window)*growthShare/100
}

// begin decides what is to go and logs that it begins, and that it has ended
// where only results are left out. No messages means that there is nothing to sum
// up, or not enough. The caller holds mu.
func (a *Agent) begin(r sending, why occasion, size int64) (session.Cut, error) {
	window := int64(a.opts.Window)
	least, unseen := max(window*worthShare/100, 1), window*unseenShare/100-a.headerSize()
	if why == overLimit { // the true window is smaller than what was sent
		window = min(window, size)
		least, unseen = 1, window/2
	}
	cut, ok := a.state.History.Cut(window*tailShare/100, unseen)
	if !ok {
		return session.Cut{}, nil
	}
	if cut.New < least {
		cut.Messages, cut.Prune = 0, nil
	}
	batch := []item{{session.TypeCompactionStart, session.CompactionStart{Turn: r.turn}}}
	switch gone := append(cut.Prune, cut.Unseen...); {
	case len(gone) > 0:
		batch = append(batch, item{session.TypeCompactionPrune, session.CompactionPrune{Seqs: gone}})
	case cut.Messages == 0:
		return session.Cut{}, nil
	}
	if cut.Messages == 0 {
		batch = append(batch, item{session.TypeCompactionEnd, session.CompactionEnd{OK: true}})
	}
	return cut, a.put(batch...)
}

// replace puts the summary in its place, unless it is no good: then it says why,
// and nothing is changed. The caller holds mu.
func (a *Agent) replace(cut session.Cut, resp model.Response) (*session.ErrorInfo, error) {
	summary := strings.TrimSpace(resp.Text) // calls are ignored
	if resp.Finish == model.FinishLength {  // what it left out would be lost
		return &session.ErrorInfo{Code: codeCutSummary, Message: "the summary was cut at the limit of tokens"}, nil
	}
	if summary == "" {
		return &session.ErrorInfo{Code: codeEmptySummary, Message: "the model answered without a summary"}, nil
	}
	instructions := ""
	if text, ok := a.state.AdmittedInstructions(); ok && cut.Instructions {
		instructions = inForce(text)
	}
	text, err := summaryText(summary, instructions, a.state.Questions.Active())
	if err != nil {
		return nil, err
	}
	if int64(session.Tokens(text)) >= a.state.History.WeightOf(cut.Messages) {
		return &session.ErrorInfo{Code: codeLongSummary, Message: "the summary is no shorter than what it sums up"}, nil
	}
	m := a.message([]session.Block{{Type: session.BlockText, Text: text}}, session.Source{Kind: session.SourcePlugin})
	return nil, a.put(
		item{session.TypeCompactionSummary, session.CompactionSummary{FromSeq: cut.From, ToSeq: cut.To, MessageID: m.ID, Usage: a.priced(resp.Usage)}},
		item{session.TypeUserMessage, replacing{m, session.SurfaceOp{Op: session.OpReplace, FromSeq: cut.From, ToSeq: cut.To}}},
		item{session.TypeCompactionEnd, session.CompactionEnd{OK: true}},
	)
}

// problemOf is why no summary came.
func problemOf(err error) *session.ErrorInfo {
	var e *model.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return &session.ErrorInfo{Code: e.Code, Message: e.Message, Status: e.Status}
	}
	return &session.ErrorInfo{Code: codeInternal, Message: err.Error()}
}

// summaryText is the message that stands for what was summed up. What must not
// be lost by a summary is in it word for word: the instructions in force, and at
// its very end the questions without an answer.
func summaryText(summary, instructions string, waiting []session.Tracked) (string, error) {
	var b strings.Builder
	b.WriteString("The conversation before this point was summed up to save room. This is your summary of it; the messages that follow are as they were.\n\n")
	b.WriteString(summary)
	if instructions != "" {
		b.WriteString("\n\nThe instructions given at the beginning, unchanged:\n\n")
		b.WriteString(instructions)
	}
	if len(waiting) == 0 {
		return b.String(), nil
	}
	b.WriteString("\n\nQuestions to the user that have no answer yet. They are neither answered nor skipped; an answer arrives as a user message that names the callId. As they were asked, one a line:")
	for _, q := range waiting {
		line, err := session.Marshal(struct {
			CallID    string             `json:"callId"`
			Questions []session.Question `json:"questions"`
		}{q.CallID, q.Questions})
		if err != nil {
			return "", err
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	return b.String(), nil
}
