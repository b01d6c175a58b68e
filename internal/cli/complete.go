package cli

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// completion is what cobra calls to complete an argument or a flag's value. One
// that fails completes nothing: a shell has no place for its words.
type completion = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)

// completeSessions completes the id of a session that is not among the
// arguments yet, the latest used first, or the path of a log.
func completeSessions(a *App) completion {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if strings.ContainsRune(toComplete, '/') {
			return []string{strings.TrimPrefix(logExtension, ".")}, cobra.ShellCompDirectiveFilterFileExt
		}
		home, err := a.Home()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		entries, err := a.store(home).List(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		now := time.Now()
		out := matching(nil, toComplete, args, "last", "the last one of this directory")
		for _, e := range entries {
			if e.Header.Origin != originSubagent {
				out = matching(out, toComplete, args, typedPart(e.ID, toComplete), age(e.UpdatedAt, now)+"  "+a.folder(e.Header.Cwd))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// typedPart is the part of an id that begins as the typed word does: the id, or
// what stands behind one of its dashes, since a shell offers only what begins so.
func typedPart(id, typed string) string {
	if typed == "" {
		return id
	}
	for part, more := id, true; more; _, part, more = strings.Cut(part, "-") {
		if strings.HasPrefix(part, typed) {
			return part
		}
	}
	return id
}

// activeIn is what can still be answered in a session. Whether its owner lives
// makes no difference to that.
func (a *App) activeIn(ctx context.Context, arg string) ([]remote.ActiveQuestion, error) {
	_, paths, err := a.locate([]string{arg})
	if err != nil {
		return nil, err
	}
	list, _, err := readQuestions(ctx, a.key(), paths[0], true)
	return list.Active, err
}

// completeCalls completes a session and then the id of one of its calls whose
// question can still be answered.
func completeCalls(a *App) completion {
	sessions := completeSessions(a)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return sessions(cmd, args, toComplete)
		case 1:
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		active, err := a.activeIn(cmd.Context(), args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []string
		for _, q := range active {
			text := ""
			if len(q.Questions) > 0 {
				text = q.Questions[0].Question
			}
			out = matching(out, toComplete, nil, q.CallID, text)
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeAnswers completes the value of a flag that answers a question: id=LABEL
// of its options, id= where it takes words, or the id alone.
func completeAnswers(a *App, of func(session.Question) []string) completion {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		active, err := a.activeIn(cmd.Context(), args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var out []string
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		for _, batch := range active {
			if len(args) > 1 && !strings.HasPrefix(batch.CallID, args[1]) {
				continue
			}
			for _, q := range batch.Questions {
				for _, word := range of(q) {
					if strings.HasSuffix(word, "=") {
						directive |= cobra.ShellCompDirectiveNoSpace
					}
					if !strings.ContainsFunc(word, unicode.IsControl) { // a shell has one line for it
						out = matching(out, toComplete, nil, word, q.Question)
					}
				}
			}
		}
		return out, directive
	}
}

// The words of --select, --custom and --skip.
func selectWords(q session.Question) (words []string) {
	for _, o := range q.Options {
		words = append(words, q.ID+"="+o.Label)
	}
	return words
}

func customWords(q session.Question) []string { return []string{q.ID + "="} }

func skipWords(q session.Question) []string { return []string{q.ID} }

// onlyFirst completes the first argument alone.
func onlyFirst(complete completion) completion {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, toComplete)
	}
}

// matching appends a word that begins as the typed one does and is not among
// those given, with words about it that a terminal can show.
func matching(out []string, toComplete string, given []string, word, about string) []string {
	if !strings.HasPrefix(word, toComplete) || slices.Contains(given, word) {
		return out
	}
	return append(out, word+"\t"+firstWords(view.OneLine(about)))
}
