package files

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"deepseek/internal/permission"
	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// change is one decided change of a file.
type change struct {
	tool, callID string
	title        string // for the approval
	at           place
	old          *version // nil where the file is new
	content      []byte
	done         string // what the model is told when it is done
}

// apply asks the guard, writes, and remembers the new version as seen.
func (e Env) apply(ctx context.Context, c change) tool.Result {
	diff := diffOf(c.at.shown, c.old, c.content)
	acc, err := e.Guard.ForWrite(ctx, c.at.abs, permission.AskWrite{Tool: c.tool, CallID: c.callID, Title: c.title, Detail: diff})
	if err != nil {
		return result(c.at.failed(err))
	}
	defer acc.Root.Close() //nolint:errcheck // a folder handle
	if err = c.stale(acc); err == nil {
		err = put(ctx, acc, c.old, c.content)
	}
	if errors.Is(err, errStale) {
		err = coded{CodeStale, c.at.shown + " was changed by somebody else meanwhile; read it again"}
	}
	var ro coded
	if errors.As(err, &ro) && ro.code == CodeReadOnly {
		err = coded{CodeReadOnly, c.at.shown + ": " + ro.text}
	}
	if err != nil {
		return result(c.at.failed(err))
	}
	seen := session.Observed{Path: acc.Abs, Hash: hashOf(c.content)}
	e.Observed.set(seen.Path, seen.Hash)
	return tool.Result{
		Content: c.done,
		Meta:    &session.ToolMeta{Diff: diff, Path: acc.Abs, Observed: []session.Observed{seen}},
	}
}

// stale tells whether the guard's handle leads elsewhere than what was read.
func (c change) stale(acc permission.Access) error {
	if c.old != nil && acc.Abs != c.at.real {
		return errStale
	}
	return nil
}

const (
	maxDiff   = 64 << 10 // bytes of a diff that is kept
	maxDiffed = 4 << 20  // bytes of both sides that are compared
)

// diffOf is the change as a unified diff, cut at a line.
func diffOf(name string, old *version, content []byte) string {
	before, from := "", "/dev/null"
	if old != nil {
		before, from = string(old.content), "a/"+strings.TrimPrefix(name, "/")
	}
	to := "b/" + strings.TrimPrefix(name, "/")
	if len(before)+len(content) > maxDiffed || binary([]byte(before)) != "" || binary(content) != "" {
		return fmt.Sprintf("--- %s\n+++ %s\n%d bytes replaced by %d, too large or not text: not compared\n", from, to, len(before), len(content))
	}
	after := string(content)
	diff, err := udiff.ToUnified(from, to, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil {
		return fmt.Sprintf("--- %s\n+++ %s\nnot compared: %v\n", from, to, err)
	}
	diff = tool.Printable(diff)
	if len(diff) <= maxDiff {
		return diff
	}
	cut := strings.LastIndexByte(diff[:maxDiff], '\n') + 1
	if cut == 0 {
		cut = len(strings.ToValidUTF8(diff[:maxDiff], ""))
	}
	return diff[:cut] + fmt.Sprintf("… %d more bytes of this diff\n", len(diff)-cut)
}
