package view

import (
	"fmt"
	"time"

	"deepseek/internal/session"
)

// Total is what the summary tells.
type Total struct {
	SessionID    string
	FinishReason string // told unless it is completed
	Steps        int
	Usage        session.Usage
	Denied       int // approvals refused
	Took         time.Duration
}

// Summary is the last line: session, steps, tokens with the cached share, cost.
func (s *Screen) Summary(t Total) {
	s.locked(func() {
		s.endText()
		if s.o.Quiet {
			return
		}
		for _, l := range wrap(t.parts(), s.o.Width()) {
			s.line(s.style.dim.Sprint(l))
		}
	})
}

func (t Total) parts() []string {
	steps := "steps"
	if t.Steps == 1 {
		steps = "step"
	}
	parts := []string{"session " + t.SessionID, fmt.Sprintf("%d %s", t.Steps, steps)}
	in := t.Usage.InputTokens + t.Usage.CacheReadTokens
	tokens := fmt.Sprintf("tokens %s in", Count(in))
	if in > 0 {
		tokens += fmt.Sprintf(" (%d %% cached)", t.Usage.CacheReadTokens*100/in)
	}
	parts = append(parts, tokens+", "+Count(t.Usage.OutputTokens)+" out")
	if t.Usage.CostUSD != nil {
		parts = append(parts, Dollars(*t.Usage.CostUSD))
	}
	parts = append(parts, Took(t.Took))
	if t.Denied > 0 {
		parts = append(parts, fmt.Sprintf("%d denied", t.Denied))
	}
	if t.FinishReason != "" && t.FinishReason != session.EndCompleted {
		parts = append(parts, t.FinishReason)
	}
	return parts
}

// wrap puts parts on as few lines as fit, never breaking one.
func wrap(parts []string, columns int) []string {
	var lines []string
	for _, p := range parts {
		if n := len(lines); n > 0 && width(lines[n-1])+2+width(p) <= columns {
			lines[n-1] += "  " + p
			continue
		}
		lines = append(lines, p)
	}
	return lines
}
