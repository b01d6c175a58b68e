package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"deepseek/internal/session"
)

// shape says what a generated log is like.
type shape struct {
	id, cwd   string
	steps     int // each is five events
	output    int // bytes of a tool's result
	live      int // steps whose messages are still in the history
	questions int // of them, asked at even distances and left open to a late answer
	system    string
	model     string
}

// logWriter writes a session file as a long run leaves it. The first failure stays.
type logWriter struct {
	w    *bufio.Writer
	seq  int64
	line []byte
	err  error
}

const startTime = 1_790_000_000_000

func (l *logWriter) add(typ string, data any, op *session.SurfaceOp) {
	e, err := session.NewEvent(typ, startTime+l.seq, data)
	if l.err = errors.Join(l.err, err); l.err != nil {
		return
	}
	e.Seq, e.SurfaceOp = l.seq, op
	l.line = e.AppendLine(l.line[:0])
	_, l.err = l.w.Write(l.line)
	l.seq++
}

// write makes the file of a shape, and the folders above it.
func (s shape) write(path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l := &logWriter{w: bufio.NewWriterSize(f, 1<<20)}
	h, err := session.Marshal(session.Header{Type: "session", Version: session.Version, ID: s.id, CreatedAt: startTime, Cwd: s.cwd})
	if err != nil {
		return err
	}
	_, err = l.w.Write(append(h, '\n'))
	s.events(l)
	return errors.Join(err, l.err, l.w.Flush())
}

func (s shape) events(l *logWriter) {
	task := userMessage("m0", "make the tests of this repository pass", session.SourceUser)
	l.add(session.TypeSettings, session.Settings{Mode: "timed", Timeout: 120, Permission: "full-access", Approve: "never"}, nil)
	l.add(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextTurn, Inserted: []session.UserMessage{task}}, nil)
	l.add(session.TypeTurnStart, session.TurnStart{Turn: 1}, nil)
	l.add(session.TypeInboxSpliced, session.InboxSpliced{Target: session.NextTurn, RemovedCount: 1, Inserted: []session.UserMessage{}}, nil)
	l.add(session.TypeStepStart, session.StepMark{Turn: 1, Step: 1}, nil)
	first := l.seq
	l.add(session.TypeUserMessage, task, nil)
	l.add(session.TypeRequestHeader, session.RequestHeader{Reason: session.HeaderInitial, Header: session.HeaderBody{
		Config: session.RequestConfig{Provider: "deepseek", Model: s.model}, System: s.system,
		Tools: toolSpecs(),
	}}, nil)
	every := max(s.live, 1)
	output := strings.Repeat(`ok  	example.org/module/internal/part	0.41s  "cached"`+"\n", s.output/52+1)[:s.output]
	for i := 1; i <= s.steps; i++ {
		if i > 1 {
			l.add(session.TypeStepStart, session.StepMark{Turn: 1, Step: i}, nil)
		}
		// The summary takes the place of what is older than the live steps, the
		// last time so that just these are left.
		if i > 1 && (s.steps-i+1)%every == 0 && s.live > 0 {
			l.compact(first, i)
		}
		s.step(l, i, output)
	}
	l.add(session.TypeTurnEnd, session.TurnEnd{Turn: 1, Reason: session.Reason{Kind: session.EndCompleted}}, nil)
}

// toolSpecs are about as long as the product's own.
func toolSpecs() []session.ToolSpec {
	words := strings.Repeat("What the tool does, and when to use another instead. ", 4)
	list := []session.ToolSpec{{Name: session.AskTool, Description: words, Parameters: []byte(`{"type":"object","properties":{"questions":{"type":"array"},"timeout":{"type":"number"}}}`)}}
	for i := range 16 {
		list = append(list, session.ToolSpec{
			Name: fmt.Sprintf("tool_%d", i), Description: words,
			Parameters: []byte(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"a path below the workspace"},"limit":{"type":"integer","minimum":1,"description":"how many lines at most"}}}`),
		})
	}
	return list
}

func (s shape) step(l *logWriter, i int, output string) {
	name, arguments, id := "bash", fmt.Sprintf(`{"command":"go test ./internal/part%d"}`, i%97), fmt.Sprintf("call_%d", i)
	result := output
	if s.questions > 0 && i%max(s.steps/s.questions, 1) == 0 {
		name = session.AskTool
		arguments = fmt.Sprintf(`{"questions":[{"id":"q","question":"Which of the %d?","options":[{"label":"one"},{"label":"two"}]}]}`, i)
		result, _ = session.PendingText(id, "nobody answered in time; go on") // text of our own
	}
	l.add(session.TypeAssistantMessage, session.AssistantMessage{Turn: 1, Step: i, Message: session.ModelMessage{
		ID: fmt.Sprintf("a%d", i), Role: "assistant", Source: session.Source{Kind: session.SourceModel, Provider: "deepseek", Model: s.model},
		Content: []session.Block{
			{Type: session.BlockText, Text: "I run the tests of the next part, to see what is left."},
			{Type: session.BlockToolCall, ID: id, Name: name, Arguments: arguments},
		},
	}, Usage: &session.Usage{InputTokens: 900, CacheReadTokens: 20_000, OutputTokens: 80}}, nil)
	l.add(session.TypeToolCall, session.ToolCall{Turn: 1, Step: i, CallID: id, Name: name, Arguments: arguments}, nil)
	l.add(session.TypeToolResult, session.ToolResult{Turn: 1, Step: i, Message: session.ToolMessage{
		ID: fmt.Sprintf("r%d", i), Role: "tool", ToolCallID: id, Content: result,
	}}, nil)
	l.add(session.TypeStepEnd, session.StepMark{Turn: 1, Step: i}, nil)
}

// compact replaces everything before the step at hand.
func (l *logWriter) compact(first int64, step int) {
	to := l.seq - 2 // the step's start stays
	l.add(session.TypeCompactionStart, session.CompactionStart{Turn: 1}, nil)
	m := userMessage(fmt.Sprintf("s%d", step), strings.Repeat("The tests of the earlier parts pass. ", 40), session.SourcePlugin)
	l.add(session.TypeCompactionSummary, session.CompactionSummary{FromSeq: first, ToSeq: to, MessageID: m.ID}, nil)
	l.add(session.TypeUserMessage, m, &session.SurfaceOp{Op: session.OpReplace, FromSeq: first, ToSeq: to})
	l.add(session.TypeCompactionEnd, session.CompactionEnd{OK: true}, nil)
}

func userMessage(id, text, kind string) session.UserMessage {
	return session.UserMessage{ID: id, Role: "user", Content: []session.Block{{Type: session.BlockText, Text: text}}, Source: session.Source{Kind: kind}}
}
