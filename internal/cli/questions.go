package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

type questionsOptions struct {
	session string // "" = all
	json    bool
	watch   bool
	bell    bool
	states  []string // none = all
}

func questionStates() []string {
	return []string{string(session.QuestionOpen), string(session.QuestionContinued), string(session.QuestionSettled)}
}

func newQuestions(a *App, run func(context.Context, *App, questionsOptions) error) *cobra.Command {
	var o questionsOptions
	cmd := &cobra.Command{
		Use:   "questions [SESSION]",
		Short: "List what waits for an answer of yours",
		Long: "List the questions that wait for an answer, of a session or of all, and the command that answers each.\n" +
			"open: the agent waits for it; continued: it went on with other work; settled: it has its answer.",
		Example: `  deepseek questions
  deepseek questions --state continued --json`,
		Args:              atMost("SESSION"),
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "" {
				return usagef("the session is empty\nleave it out for those of all sessions")
			}
			if len(args) > 0 {
				o.session = args[0]
			}
			for _, s := range o.states {
				if err := oneOf("state", s, questionStates()); err != nil {
					return err
				}
			}
			if o.watch && o.json {
				return usagef("--watch shows text only\nfor data ask again and again: deepseek questions --json")
			}
			if o.bell && !o.watch {
				return usagef("--bell is for questions that come\ngive it with --watch")
			}
			return run(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print an object for SESSION, else an array of objects")
	f.BoolVar(&o.watch, "watch", false, "stay, and show the list anew when something changes, until Ctrl+C")
	f.BoolVar(&o.bell, "bell", false, "with --watch: ring the terminal's bell when a question comes")
	f.StringSliceVar(&o.states, "state", nil, "only questions in these `states`: open,continued,settled")
	// The error is for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(questionStates(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// sessionQuestions is the questions of one session as they are printed.
type sessionQuestions struct {
	SessionID string                   `json:"sessionId"`
	Live      bool                     `json:"live"`
	Active    []remote.ActiveQuestion  `json:"active"`
	Settled   []remote.SettledQuestion `json:"settled"`
	Waits     []remote.Wait            `json:"waits,omitzero"` // of a live session; nil where its owner did not tell

	ref       string // how commands name the session
	cwd       string
	updatedAt int64 // ms since the epoch
	untold    error // why Waits of a live session are not known
}

// questionReader reads what a `questions` was asked for. It remembers what the
// logs said that have not changed since. One goroutine's.
type questionReader struct {
	a         *App
	o         questionsOptions
	home, cwd string
	store     *logstore.Store
	recall    recall
}

func runQuestions(ctx context.Context, a *App, o questionsOptions) error {
	r := &questionReader{a: a, o: o}
	var err error
	if r.home, err = a.Home(); err != nil {
		return err
	}
	if r.cwd, err = a.Cwd(); err != nil {
		return err
	}
	r.store = a.store(r.home)
	a.lookForKey()
	r.recall.key = a.key()
	if o.watch {
		return r.watch(ctx)
	}
	found, notes, err := r.read(ctx)
	if err != nil {
		return err
	}
	for _, n := range notes {
		a.Warnf("deepseek: %s\n", n)
	}
	if o.session != "" && o.json {
		return a.printJSON(found[0])
	}
	found = r.drop(found)
	if o.json {
		return a.printJSON(append([]sessionQuestions{}, found...)) // never null
	}
	if a.printQuestions(a.Out, r.home, found, r.settled(), time.Now()) == 0 {
		a.Warnf("deepseek: no question waits for an answer\n")
	}
	return nil
}

// read reads the questions that were asked for. notes are what could not be
// known, a line each.
func (r *questionReader) read(ctx context.Context) (found []sessionQuestions, notes []string, err error) {
	if r.o.session == "" {
		if found, notes, err = r.all(ctx); err != nil {
			return nil, nil, err
		}
	} else {
		path, err := r.store.Locate(r.o.session, r.cwd)
		if err != nil {
			return nil, nil, err
		}
		q, err := r.recall.questionsOf(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		if byPath(r.o.session) {
			q.ref = path
		}
		found = []sessionQuestions{q}
	}
	for i := range found {
		found[i].keep(r.o.states)
		if err := found[i].untold; err != nil {
			notes = append(notes, fmt.Sprintf("what else session %s waits for is not known: %s", found[i].SessionID, view.OneLine(err.Error())))
		}
	}
	return found, notes, nil
}

// drop drops the sessions without a question, where all were asked for.
func (r *questionReader) drop(found []sessionQuestions) []sessionQuestions {
	if r.o.session != "" {
		return found
	}
	return slices.DeleteFunc(found, func(q sessionQuestions) bool { return len(q.Active)+len(q.Settled)+len(q.Waits) == 0 })
}

// settled tells whether settled questions are shown as text: over all sessions
// only to who asks for them.
func (r *questionReader) settled() bool { return r.o.session != "" || len(r.o.states) > 0 }

// keep drops what is in none of the states; no states are all.
func (q *sessionQuestions) keep(states []string) {
	if len(states) == 0 {
		return
	}
	q.Active = slices.DeleteFunc(q.Active, func(a remote.ActiveQuestion) bool { return !slices.Contains(states, a.State) })
	if !slices.Contains(states, string(session.QuestionSettled)) {
		q.Settled = []remote.SettledQuestion{}
	}
	if len(q.Waits) > 0 && !slices.Contains(states, string(session.QuestionOpen)) {
		q.Waits = []remote.Wait{}
	}
}

// questionsOf reads a session's log and asks its owner, if there is one, for
// the cards that no log knows. The owner is asked first: one that leaves in
// between has left nothing open.
func (r *recall) questionsOf(ctx context.Context, path string) (sessionQuestions, error) {
	waits, live, untold := ownerWaits(ctx, r.key, path)
	list, end, err := r.questions(ctx, path, live)
	if err != nil {
		return sessionQuestions{}, err
	}
	return sessionQuestions{
		SessionID: end.Header.ID, Live: live, Active: list.Active, Settled: list.Settled, Waits: waits,
		ref: end.Header.ID, cwd: end.Header.Cwd, updatedAt: end.UpdatedAt, untold: untold,
	}, nil
}

// ownerPatience is how long an owner may take to say what it waits for.
const ownerPatience = 2 * time.Second

// ownerWaits asks the owner of a session for its waits. One that refuses this
// process, or does not say, is alive all the same, and untold says why.
func ownerWaits(ctx context.Context, key redact.Key, path string) (waits []remote.Wait, live bool, untold error) {
	o, err := logstore.ReadOwner(path)
	if err != nil || o.PID <= 0 || o.Socket == "" {
		return nil, false, nil // none, or none that could be reached
	}
	ctx, cancel := context.WithTimeout(ctx, ownerPatience)
	defer cancel()
	if ofRoot(path, o) {
		return nil, remote.Probe(ctx, o.Socket), nil // a sub-agent's: it waits for nobody, its root does
	}
	c, err := remote.Dial(ctx, o.Socket, remote.WithRedact(key.Bytes))
	if err != nil {
		var refused *remote.Error
		switch {
		case ctx.Err() != nil: // it took the connection, and is stopped or has too much to do
			return nil, true, fmt.Errorf("process %d, which runs it, does not answer", o.PID)
		case !errors.As(err, &refused):
			return nil, false, nil
		case refused.Code == remote.CodeOwnerLeaving: // its work is done
			return []remote.Wait{}, true, nil
		}
		return nil, true, refused
	}
	list, err := c.Questions(ctx)
	if err = errors.Join(err, c.Close()); err != nil {
		return nil, true, err
	}
	return append([]remote.Wait{}, list.Waits...), true, nil
}

// all is the questions of every session, the latest used first. A session that
// cannot be read is left out, with a note.
func (r *questionReader) all(ctx context.Context) (whole []sessionQuestions, notes []string, err error) {
	paths, err := r.store.Paths()
	if err != nil {
		return nil, nil, err
	}
	found, failed := make([]sessionQuestions, len(paths)), make([]error, len(paths))
	inParallel(len(paths), func(i int) {
		found[i], failed[i] = r.recall.questionsOf(ctx, paths[i])
		found[i].ref = logstore.IDOf(paths[i])
	})
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	for i, err := range failed {
		switch {
		case err == nil:
			whole = append(whole, found[i])
		case !errors.Is(err, logstore.ErrNotFound): // else removed since
			notes = append(notes, "left out: "+view.OneLine(err.Error()))
		}
	}
	slices.SortStableFunc(whole, func(a, b sessionQuestions) int {
		return cmp.Or(cmp.Compare(b.updatedAt, a.updatedAt), strings.Compare(b.ref, a.ref))
	})
	return whole, notes, nil
}
