package cli

import (
	"fmt"
	"os"
	"strings"

	"deepseek/internal/session"
	"deepseek/internal/view"
)

// summaryBound is how much of a question a job's summary page repeats, in bytes.
// GitHub drops a summary of more than 1 MB whole.
const summaryBound = 4 << 10

// jobSummary adds the questions that wait to the summary page of a job of GitHub
// Actions. That it cannot be written is told and fails nothing.
func (a *App) jobSummary(res *session.RunResult) {
	path := a.Getenv("GITHUB_STEP_SUMMARY")
	text := a.key().String(summaryOf(res))
	if path == "" || text == "" {
		return
	}
	var err error
	if home, homeErr := a.Home(); homeErr == nil {
		if what := a.precious(home, linkTarget(path)); what != "" {
			err = fmt.Errorf("%s is %s", path, what)
		}
	}
	if err == nil {
		err = appendTo(path, text)
	}
	if err != nil {
		a.Warnf("deepseek: the summary of the job is not written: %v\n", err)
	}
}

// appendTo writes to the end of a regular file, which need not be there yet.
// Anything else might block, and is refused.
func appendTo(path, text string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// summaryOf is the Markdown of what waits for an answer, "" if nothing does.
func summaryOf(res *session.RunResult) string {
	var b strings.Builder
	waiting := 0
	for _, q := range res.Questions {
		if q.Queued {
			continue
		}
		waiting++
		if b.Len() > 100*summaryBound {
			continue
		}
		for _, one := range q.Questions {
			fmt.Fprintf(&b, "\n%s\n", fenced(view.Excerpt(view.Visible(plainQuestion(one)), 40, summaryBound)))
		}
		fmt.Fprintf(&b, "\nAnswer it where the session lies, or elsewhere with the path of the session file that was kept, in place of the id:\n\n%s\n", fenced(q.Answer))
	}
	if waiting == 0 {
		return ""
	}
	verb := "waits"
	if waiting > 1 {
		verb = "wait"
	}
	return fmt.Sprintf("### deepseek: %d %s %s for an answer\n\nSession `%s`\n%s\n", waiting, plural(waiting, "question"), verb, res.SessionID, b.String())
}

// plainQuestion is a question with its options as plain text.
func plainQuestion(q session.Question) string {
	text := q.Question
	if q.Header != "" {
		text = q.Header + ": " + text
	}
	for _, o := range q.Options {
		text += "\n  - " + o.Label
		if o.Description != "" {
			text += ": " + o.Description
		}
	}
	return text
}

// fenced is text as a block of code, whatever it holds.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
