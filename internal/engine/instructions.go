package engine

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"deepseek/internal/session"
)

// Instruction is a file of instructions for agents.
type Instruction struct {
	Path string
	Text string // may be cut behind MaxInstructions bytes
}

// MaxInstructions is how long all instructions together may be, in bytes.
const MaxInstructions = 64 << 10

// ReadInstruction judges the bytes of a file of instructions. What is no text is
// an error, since a model would be sent garbage; odd is a remark on a text that
// has something in it that is shown as \uFFFD. A rune that the end of data cuts is fine.
func ReadInstruction(data []byte) (text, odd string, err error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return "", "", errors.New("it is UTF-16, and only UTF-8 is read; save it as UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return "", "", errors.New("it holds null bytes, so it is no text; save it as UTF-8")
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if !utf8.FullRune(data[i:]) {
			break
		}
		if r == utf8.RuneError && n == 1 {
			return string(data), fmt.Sprintf("byte %d is no UTF-8; what is none is sent as \uFFFD", i+1), nil
		}
		i += n
	}
	return string(data), "", nil
}

const (
	instructionsHead    = "Instructions for working here, given by the user and the project. Where they disagree, the later ones count.\n"
	instructionsChanged = "The instructions have changed. From now on these count instead of the earlier ones.\n\n"
	instructionsGone    = "The instructions given earlier no longer count: their files are gone."
)

// InstructionsText is the message that the files make, in their order, each
// headed by its path; "" if none says anything. It is cut at MaxInstructions,
// with a note that names what is missing.
func InstructionsText(files []Instruction) string {
	var b strings.Builder
	var starts []int // of the files that say something
	var paths []string
	for _, f := range files {
		text := strings.TrimSpace(strings.ToValidUTF8(f.Text, "\uFFFD"))
		if text == "" {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(instructionsHead)
		}
		starts, paths = append(starts, b.Len()), append(paths, f.Path)
		b.WriteString("\n# " + f.Path + "\n\n" + text + "\n")
	}
	all := strings.TrimSuffix(b.String(), "\n")
	if len(all) <= MaxInstructions {
		return all
	}
	for i := len(paths) - 1; ; i-- { // the file in which the cut falls
		note := fmt.Sprintf("\n\n[cut here: instructions are limited to %d KB in all. The rest of %s and any later file is left out; read it if you need it.]", MaxInstructions>>10, paths[i])
		if end := MaxInstructions - len(note); starts[i] < end || i == 0 {
			return upTo(all, end) + note
		}
	}
}

// upTo is the beginning of s in at most n bytes, cut between runes.
func upTo(s string, n int) string {
	n = min(max(n, 0), len(s))
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// announce queues the instructions ahead of what the turn about to begin claims,
// if the log has not got them yet. The caller holds mu.
func (a *Agent) announce() error {
	now := a.opts.Instructions
	if a.opts.Redact != nil {
		now = string(a.opts.Redact([]byte(now))) // as the log would hold it
	}
	told, _ := a.state.Instructions()
	text := announcement(told, now)
	if text == "" {
		return nil
	}
	m := a.message([]session.Block{{Type: session.BlockText, Text: text}}, session.Source{Kind: session.SourceAgentInstructions})
	return a.put(item{session.TypeInboxSpliced, a.state.Inbox.Ahead(session.NextStep, m)})
}

// announcement is the message that makes the instructions now count for a model
// that was told others before; "" if nothing has changed.
func announcement(told, now string) string {
	switch {
	case inForce(told) == now:
		return ""
	case told == "":
		return now
	case now == "":
		return instructionsGone
	}
	return instructionsChanged + now
}

// inForce is what counts of a message of instructions.
func inForce(told string) string {
	if told == instructionsGone {
		return ""
	}
	return strings.TrimPrefix(told, instructionsChanged)
}
