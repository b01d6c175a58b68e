package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/model"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// Coded is a failure whose exit code and words are known.
type Coded struct {
	Exit    int
	Code    string // "" for usage errors, which have words only
	Message string // what happened, to what; "" says nothing more, the words are out
	Hint    string // what to do next, one or two lines
	State   string // of a question that cannot be answered, for JSON
	Printed bool   // the JSON object is on stdout already
}

func (c *Coded) Error() string {
	if c.Code == "" {
		return c.Message
	}
	return c.Code + ": " + c.Message
}

// usagef is a usage error. A second line, if there is one, says what to do.
func usagef(format string, args ...any) *Coded {
	message, hint, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	return &Coded{Exit: ExitUsage, Message: message, Hint: hint}
}

// failure turns an error into an exit code and words: the only place that does.
// Every failure that has words says what to do next.
func failure(err error) *Coded {
	c := classify(session.PlainJSON(err))
	if c.Message == "" || c.Hint != "" {
		return c
	}
	advised := *c
	advised.Hint = advise(err, c)
	return &advised
}

func classify(err error) *Coded {
	var (
		coded  *Coded
		sig    Signal
		conf   *config.Error
		busy   *logstore.BusyError
		locate *logstore.LocateError
		write  *logstore.WriteError
		mod    *model.Error
		far    *remote.Error
		ask    *question.Error
	)
	switch {
	case err == nil:
		return &Coded{Exit: ExitOK}
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &conf), errors.Is(err, config.ErrNoKey), errors.As(err, &locate):
		return usagef("%s", err)
	case errors.Is(err, logstore.ErrNotFound): // found, and removed before it was opened
		return usagef("%s\nsee: deepseek sessions", err)
	case errors.As(err, &busy):
		return words(ExitBusy, CodeSessionBusy, err)
	case errors.Is(err, session.ErrTooNew):
		return words(ExitDamaged, CodeSessionTooNew, err)
	case errors.Is(err, session.ErrDamaged):
		return words(ExitDamaged, CodeSessionDamaged, err)
	case errors.As(err, &write):
		return words(ExitFailed, CodeLogWrite, err)
	case errors.As(err, &far):
		return &Coded{Exit: ExitFailed, Code: far.Code, Message: far.Message}
	case errors.As(err, &ask):
		return &Coded{Exit: ExitFailed, Code: ask.Code, Message: ask.Message}
	case errors.As(err, &sig):
		return &Coded{Exit: sig.Exit(), Code: CodeAborted, Message: sig.Error(), Hint: "nothing that was on disk is lost: give the command again"}
	case errors.As(err, &mod):
		message := mod.Message
		if mod.Status != 0 {
			message = fmt.Sprintf("%s (HTTP %d)", mod.Message, mod.Status)
		}
		return &Coded{Exit: ExitFailed, Code: mod.Code, Message: message}
	case errors.Is(err, context.Canceled):
		return &Coded{Exit: ExitFailed, Code: CodeAborted, Message: "cancelled"}
	}
	return words(ExitFailed, CodeFailed, err)
}

// words takes the first line of an error as the message and the rest as the hint.
// A failure that came up in two places and was joined is told once.
func words(exit int, code string, err error) *Coded {
	message, rest, _ := strings.Cut(err.Error(), "\n")
	lines := slices.DeleteFunc(strings.Split(rest, "\n"), func(line string) bool { return line == message })
	return &Coded{Exit: exit, Code: code, Message: message, Hint: strings.Join(lines, "\n")}
}

// report writes the words to stderr, in at most three lines, and where JSON was
// asked for the object to stdout.
func (a *App) report(c *Coded) {
	if c.Message == "" {
		return
	}
	text := c.Message
	if c.Code != "" {
		text = c.Code + ": " + c.Message
	}
	if c.Hint != "" {
		text += "\n" + a.located(c.Hint)
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > 3 {
		lines = lines[:3]
	}
	text = strings.Join(lines, "\n")
	if a.ErrTerminal() {
		text = view.Visible(text)
	}
	a.Warnf("deepseek: %s\n", text)
	if c.Exit == ExitUsage || c.Printed || !a.json {
		return
	}
	type object struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	line, err := session.Marshal(struct {
		Error object `json:"error"`
		State string `json:"state,omitempty"`
	}{object{c.Code, c.Message}, c.State})
	if err == nil { // strings cannot fail
		a.Printf("%s\n", line)
	}
}
