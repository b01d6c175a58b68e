package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
	"deepseek/internal/session"
)

func newSessionsCheck(a *App, run sessionsRun) *cobra.Command {
	var o sessionsOptions
	cmd := &cobra.Command{
		Use:   "check SESSION",
		Short: "Check the file of a session, line by line",
		Long: "Check the file of a session, line by line: every line is one whole event, and all of them together make sense.\n" +
			"It prints ok, or the first damage with its line and byte, and then exits with 6. The file is not changed.",
		Example: `  deepseek sessions check last
  deepseek sessions check last --json`,
		Args:              arguments("SESSION"),
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.sessions = args
			return run(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an object")
	return cmd
}

// checked is what a check found.
type checked struct {
	OK     bool       `json:"ok"`
	Path   string     `json:"path"`
	Events int64      `json:"events"` // sound ones, up to the damage
	Turns  int        `json:"turns"`
	Torn   int64      `json:"torn,omitempty"` // bytes of a cut last line, which is no damage
	Error  *codeError `json:"error,omitempty"`
}

// codeError is a failure in the JSON of a command.
type codeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"` // from 1
	Byte    *int64 `json:"byte,omitempty"` // of the line's first
}

func runSessionsCheck(ctx context.Context, a *App, o sessionsOptions) error {
	_, paths, err := a.locate(o.sessions)
	if err != nil {
		return err
	}
	found, err := check(ctx, paths[0])
	if err == nil {
		if o.json {
			return a.printJSON(found)
		}
		a.Printf("ok: %s, %s\n", counted(found.Events, "event"), counted(int64(found.Turns), "turn"))
		if found.Torn > 0 {
			a.Warnf("deepseek: the last line is cut off (%d bytes) and does not count; the next run sets it aside\n", found.Torn)
		}
		return nil
	}
	if !errors.Is(err, session.ErrDamaged) && !errors.Is(err, session.ErrTooNew) {
		return err
	}
	failed := *failure(err)
	if failed.Code == CodeSessionDamaged {
		failed.Hint = "keep a copy of it; an export or a backup may be whole"
	}
	switch {
	case o.json:
		found.Error = codeErrorOf(&failed, err)
		if err := a.printJSON(found); err != nil {
			return err
		}
		failed.Printed = true
	case !a.OneTerminal(): // which gets the same words from the error
		a.Printf("%s\n", a.visible(failed.Message))
	}
	return &failed
}

// check reads a log as its next owner would, and stricter: the events must
// have the shape of their types. It changes nothing.
func check(ctx context.Context, path string) (checked, error) {
	found := checked{Path: path}
	var st session.State
	end, err := logstore.Read(ctx, path, func(l logstore.Line) error {
		e, err := l.Event()
		if err == nil {
			err = l.Damaged(st.Apply(e))
		}
		if err != nil {
			return err
		}
		found.Events++
		if e.Type == session.TypeTurnStart {
			found.Turns++
		}
		return nil
	})
	found.OK, found.Torn = err == nil, end.Torn
	return found, err
}

func codeErrorOf(c *Coded, err error) *codeError {
	out := &codeError{Code: c.Code, Message: c.Message}
	var at *logstore.DamageError
	var unknown *logstore.UnknownTypeError
	switch {
	case errors.As(err, &at):
		out.Line, out.Byte = at.Line, &at.Offset
	case errors.As(err, &unknown):
		out.Line = unknown.Line
	}
	return out
}
