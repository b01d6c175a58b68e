package cli

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/model"
	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/remote"
)

// goesOn is the way on after what a later attempt may do without.
const goesOn = "what was done is kept; go on with: deepseek run -c TASK"

// advice is what a person does about a failure of a code, in one line. It stands
// where the failure brings no hint of its own, which knows more. Every code of a
// package that can end a command is in it.
var advice = map[string]string{
	// The model.
	model.CodeAuth:            "see which key is used and where it comes from: deepseek doctor",
	model.CodeQuota:           "top up the account, or use another key",
	model.CodeRateLimit:       "the server wants to be asked less often: wait a while",
	model.CodeContextWindow:   "begin a new session, or use a model with a longer window: deepseek models",
	model.CodeServer:          "the fault is the server's: try again later",
	model.CodeTimeout:         "see whether the server can be reached: deepseek doctor --online",
	model.CodeTransport:       "see whether the server can be reached: deepseek doctor --online",
	model.CodeProxy:           "see the address of the proxy in HTTPS_PROXY or HTTP_PROXY; hosts that need none stand in NO_PROXY",
	model.CodeEmptyResponse:   goesOn,
	model.CodeStreamClosed:    goesOn,
	model.CodeMalformed:       "see whether base_url is the address of a model: deepseek doctor --online",
	model.CodeScriptExhausted: "add a response to the script, or begin a new session",
	"CONTENT_FILTER":          "word the task in another way",
	"content_filter":          "word the task in another way",

	// The session and its log.
	CodeSessionBusy:    "wait until it is free",
	CodeSessionDamaged: "keep a copy of the file, and see what of it is whole: deepseek sessions check SESSION",
	CodeSessionTooNew:  "use the deepseek that wrote it, or a newer one",
	CodeLogWrite:       "make room on the disk, or mend the rights of the file",

	// This program.
	CodeInternal:     "this is a mistake in deepseek: report it with this message; a session goes on with: deepseek run -c TASK",
	CodeFailed:       "look for what is wrong with: deepseek doctor",
	CodeAborted:      goesOn,
	CodeOutputWrite:  "make room, or write to another place; a session is read with: deepseek show last",
	CodeConfig:       "see what is set, and where: deepseek config",
	CodeCallerIsTool: "do it yourself, in a shell of your own",

	// Questions.
	question.CodeBadAnswer:      "see the questions and their options: deepseek questions",
	question.CodeReplyQueued:    "take it back first: deepseek answer SESSION CALLID --withdraw",
	question.CodeNoClaim:        "answer it late: deepseek answer SESSION CALLID",
	question.CodeBadOutcome:     "answer it, or leave it: deepseek questions",
	question.CodeNoProvider:     "use --answerer remote to be asked from another shell, or --mode timed",
	question.CodeTimedOut:       "answer it late: deepseek answer SESSION CALLID",
	question.CodeCancelled:      goesOn,
	question.CodeAborted:        "answer it late, where it waits: deepseek questions",
	question.CodeCallerNotLive:  "look at what waits, and answer again: deepseek questions",
	question.CodeDuplicateWait:  "look at what waits, and answer again: deepseek questions",
	question.CodeEmptyQuestions: goesOn, // these are the model's mistakes
	question.CodeBadTimeout:     goesOn,
	question.CodeBadQuestions:   goesOn,
	question.CodeBadIntent:      goesOn,
	question.CodeDelegated:      goesOn,

	// The owner of a session, asked from another shell.
	remote.CodeSessionNotFound: "see which there are: deepseek sessions",
	remote.CodeReadOnlyWait:    "answer it in the terminal of the run, or begin the run with --answerer remote",
	remote.CodeOtherUser:       "do it as the user whose session it is",
	remote.CodeTooManyClients:  "end one of the shells that are attached, and try again",
	remote.CodeClientTooSlow:   "begin again: what was missed is in the log: deepseek show SESSION",
	remote.CodeClientSilent:    "it was stopped for too long: give the command again",
	remote.CodeFollowFailed:    "see what it logged with: deepseek show SESSION",
	remote.CodeOwnerLeaving:    "try again in a moment",
	remote.CodeParse:           otherVersion,
	remote.CodeMethodNotFound:  otherVersion,
	remote.CodeInvalidParams:   otherVersion,
	// INVALID_REQUEST is also a model's word, and then about what was sent to it.
	model.CodeInvalidRequest: "see whether model and base_url go together: deepseek config",
}

const otherVersion = "another version of deepseek may be at work on the session: use the same one"

// advise is the hint for a failure that brings none.
func advise(err error, c *Coded) string {
	var conf *config.Error
	var locate *logstore.LocateError
	switch {
	case errors.As(err, &conf):
		return configAdvice(conf)
	case errors.As(err, &locate):
		return "deepseek sessions lists them"
	case errors.Is(err, prompt.ErrTerminal):
		return "answer from another shell: deepseek questions says how"
	case errors.Is(err, remote.ErrNotDelivered), errors.Is(err, remote.ErrLost):
		return "see whether it still runs: deepseek sessions"
	}
	if c.Code == CodeLogWrite {
		return logWriteAdvice(err)
	}
	if hint, ok := advice[c.Code]; ok {
		return hint
	}
	switch c.Exit {
	case ExitUsage:
		return "see deepseek --help"
	case ExitNotAnswerable:
		return "see `deepseek questions` for what waits"
	}
	return advice[CodeFailed]
}

// fileAdvice says what to do about a file that a person has named: to name
// another one where it cannot be read, else how its text has to look.
func fileAdvice(err error, by, format string) string {
	var unread *fs.PathError
	if errors.As(err, &unread) {
		return "name a file that can be read with " + by
	}
	return format
}

// logWriteAdvice says what helps where a log could not be written.
func logWriteAdvice(err error) string {
	is := func(list ...error) bool {
		return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case is(syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG):
		return "make room on the disk"
	case is(syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG):
		return "keep sessions where you may write, with --home DIR, or mend the rights of the folder"
	case is(syscall.EIO):
		return "the disk does not work: look into the system's log"
	}
	return advice[CodeLogWrite]
}

// configAdvice says where a setting that cannot be used is mended.
func configAdvice(e *config.Error) string {
	switch e.Source.Origin {
	case config.FromEnv:
		return "set " + e.Source.Name + " to something else, or unset it"
	case config.FromFlag:
		return "give " + e.Source.Name + " another value, or leave it out"
	case config.FromUser:
		if e.Unread {
			return "mend that, or name another file with --config FILE"
		}
		return "mend it with: deepseek config edit"
	case config.FromProject:
		return "mend the file, which is the project's"
	}
	return "see what is set, and where: deepseek config"
}
