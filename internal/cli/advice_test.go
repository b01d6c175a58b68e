package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/model"
	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// codesOf are the codes that a package declares: its constants Code….
func codesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	codes := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range v.Names {
				if !strings.HasPrefix(name.Name, "Code") || i >= len(v.Values) {
					continue
				}
				if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if word, err := strconv.Unquote(lit.Value); err == nil {
						codes[name.Name] = word
					}
				}
			}
			return true
		})
	}
	if len(codes) < 5 {
		t.Fatalf("%s declares %d codes: they are looked for in the wrong way", dir, len(codes))
	}
	return codes
}

// toPrograms are codes of the protocol that only a program meets, which knows what it did.
var toPrograms = []string{remote.CodeAlreadyInitialized, remote.CodeNotInitialized, remote.CodeSessionNotOpen}

// TestEveryCodeHasAdvice: a new code that can end a command needs a word on what
// to do next.
func TestEveryCodeHasAdvice(t *testing.T) {
	for _, dir := range []string{".", "../model", "../question", "../remote"} {
		for name, code := range codesOf(t, dir) {
			if advice[code] == "" && !slices.Contains(toPrograms, code) {
				t.Errorf("%s.%s: %s has no advice", dir, name, code)
			}
		}
	}
	for code, text := range advice {
		if strings.Contains(text, "\n") || len(text) > 110 {
			t.Errorf("%s: the advice is no line: %s", code, text)
		}
	}
}

func TestEveryFailureSaysWhatToDo(t *testing.T) {
	shape := json.Unmarshal([]byte(`{"turn":"x"}`), new(session.TurnStart))
	for name, err := range map[string]error{
		"session is gone":          fmt.Errorf("%w: /a/b.jsonl", logstore.ErrNotFound),
		"exists":                   logstore.ErrExists,
		"conflict":                 logstore.ErrConflict,
		"closed":                   logstore.ErrClosed,
		"no such session":          &logstore.LocateError{Arg: "x", Reason: logstore.LocateUnknown},
		"ambiguous":                &logstore.LocateError{Arg: "x", Reason: logstore.LocateAmbiguous, Near: []string{"a", "b"}},
		"too short":                &logstore.LocateError{Arg: "x", Reason: logstore.LocateShort},
		"no last":                  &logstore.LocateError{Arg: "last", Reason: logstore.LocateNoLast},
		"no file":                  &logstore.LocateError{Arg: "x.jsonl", Reason: logstore.LocateNoFile},
		"no file, by the system":   &logstore.LocateError{Arg: "x.jsonl", Reason: logstore.LocateNoFile, Err: fs.ErrNotExist},
		"busy":                     &logstore.BusyError{Path: "/a/b.jsonl"},
		"busy by a process":        &logstore.BusyError{Path: "/a/b.jsonl", PID: 7, Session: "b"},
		"cannot write":             &logstore.WriteError{Path: "/a/b.jsonl", Err: syscall.ENOSPC},
		"damaged":                  &logstore.DamageError{Path: "/a/b.jsonl", Line: 4, Reason: "not one whole JSON value"},
		"unknown type":             &logstore.UnknownTypeError{Path: "/a/b.jsonl", Line: 4, Type: "new/thing"},
		"damaged by its shape":     fmt.Errorf("%w: event 4: %w", session.ErrDamaged, shape),
		"wrong type, not damage":   fmt.Errorf("read it: %w", shape),
		"setting of the flag":      &config.Error{Source: config.Source{Origin: config.FromFlag, Name: "--mode"}, Key: "mode", Reason: "is none"},
		"setting of a variable":    &config.Error{Source: config.Source{Origin: config.FromEnv, Name: "DEEPSEEK_MODE"}, Key: "mode", Reason: "is none"},
		"setting of the file":      &config.Error{Source: config.Source{Origin: config.FromUser, File: "config.yaml", Line: 2}, Key: "mode", Reason: "is none"},
		"setting of the project":   &config.Error{Source: config.Source{Origin: config.FromProject, File: "config.yaml", Line: 2}, Key: "mode", Reason: "is none"},
		"setting without a source": &config.Error{Key: "mode", Reason: "is none"},
		"no key":                   config.ErrNoKey,
		"model":                    &model.Error{Code: model.CodeQuota, Message: "Insufficient Balance", Status: 402},
		"word of a server":         &model.Error{Code: "insufficient_system_resource", Message: "busy"},
		"owner refuses":            &remote.Error{Code: remote.CodeTooManyClients, Message: "32 are connected"},
		"owner is unreachable":     fmt.Errorf("questions: %w: %w", remote.ErrNotDelivered, syscall.ECONNREFUSED),
		"owner went away":          fmt.Errorf("respond: %w", remote.ErrLost),
		"question":                 &question.Error{Code: question.CodeBadAnswer, Message: "there is no question \"x\""},
		"terminal":                 fmt.Errorf("%w: %w", prompt.ErrTerminal, syscall.EIO),
		"signal":                   Signal{Signal: syscall.SIGTERM},
		"cancelled":                context.Canceled,
		"usage":                    usagef("something is wrong"),
		"anything else":            errors.New("something"),
	} {
		c := failure(err)
		text := (&Coded{Code: c.Code, Message: c.Message}).Error() + "\n" + c.Hint
		if c.Exit == ExitOK || c.Message == "" || c.Hint == "" || strings.Count(text, "\n") > 2 {
			t.Errorf("%s: exit %d\n%s", name, c.Exit, text)
		}
		for _, word := range []string{"Go struct", "Go value", "cannot unmarshal", "&{", "%!"} {
			if strings.Contains(text, word) {
				t.Errorf("%s: it says %q\n%s", name, word, text)
			}
		}
	}
}

// TestEveryEndingOfARunSaysHowToGoOn whatever the reason that the log gives.
func TestEveryEndingOfARunSaysHowToGoOn(t *testing.T) {
	for _, end := range []session.Reason{
		{Kind: session.EndError, Error: &session.ErrorInfo{Code: model.CodeAuth, Message: "bad key", Status: 401}},
		{Kind: session.EndError, Error: &session.ErrorInfo{Code: model.CodeStreamClosed}},
		{Kind: session.EndError, Error: &session.ErrorInfo{Code: "no_such_code", Message: "m"}},
		{Kind: session.EndError},
		{Kind: session.EndMaxSteps},
		{Kind: session.EndMaxTokens},
		{Kind: session.EndBlocked},
		{Kind: session.EndAborted},
	} {
		var c *Coded
		if err := failedRun(t.Context(), end, 200, "deepseek run --session s 'go on'"); !errors.As(err, &c) {
			t.Fatal(err)
		}
		if c.Hint == "" || strings.Count(c.Hint, "\n") > 1 || c.Message == "" {
			t.Errorf("%+v: %s\n%s", end, c.Message, c.Hint)
		}
	}
}
