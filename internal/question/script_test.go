package question

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func TestLoadAnswersFaults(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"empty file", "", "no answers in it"},
		{"a comment", "# nothing\n", "no answers in it"},
		{"no list", "match: {}\n", "answers.yaml:1: want a list"},
		{"no YAML", "- [\n", "answers.yaml: line "},
		{"two documents", "[]\n---\n[]\n", "more than one YAML document"},
		{"no mapping", "- skip\n", "answers.yaml:1: entry 1: want a mapping"},
		{"unknown key", "- match: {}\n  skip: true\n- match: {}\n  selct: [a]\n", `answers.yaml:4: entry 2: unknown key "selct"`},
		{"unknown match", "- match: {heading: a}\n  skip: true\n", `answers.yaml:1: entry 1: unknown key "heading"`},
		{"a key twice", "- match: {}\n  skip: true\n  skip: true\n", `answers.yaml:3: entry 1: key "skip" stands twice`},
		{"bad expression", "- match:\n    question: \"(\"\n  skip: true\n", "answers.yaml:2: entry 1: match.question: error parsing regexp"},
		{"no match", "- skip: true\n", "answers.yaml:1: entry 1: match is missing"},
		{"says nothing", "- match: {id: a}\n", "answers.yaml:1: entry 1: says nothing"},
		{"skip: false says nothing", "- match: {id: a}\n  skip: false\n", "answers.yaml:1: entry 1: says nothing"},
		{"skip is no bool", "- match: {id: a}\n  skip: maybe\n", "answers.yaml:2: entry 1: skip: want true or false"},
		{"skip beside select", "- match: {id: a}\n  skip: true\n  select: [a]\n", "entry 1: skip stands alone"},
		{"select is no list", "- match: {id: a}\n  select: a\n", "answers.yaml:2: entry 1: select: want a list"},
		{"select is empty", "- match: {id: a}\n  select: []\n", "answers.yaml:2: entry 1: select: want a list"},
		{"a label is no text", "- match: {id: a}\n  select: [[a]]\n", "answers.yaml:2: entry 1: select: want a text"},
		{"custom is empty", "- match: {id: a}\n  custom: \"\"\n", "answers.yaml:1: entry 1: custom is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "answers.yaml")
			if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := LoadAnswers(path); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := LoadAnswers(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("%v", err)
	}
}

const answersFile = `
- match: {id: db}
  select: [pg]
- match: {header: "^Name"}
  custom: 7
- match: {question: "(?i)sure"}
  skip: true
- match: {id: bad}
  select: [nowhere]
`

func TestScriptAnswers(t *testing.T) {
	name := session.Question{ID: "n", Header: "Name of it", Question: "What?"}
	sure := session.Question{ID: "s", Question: "Are you SURE?"}
	other := session.Question{ID: "o", Question: "What else?"}
	bad := session.Question{ID: "bad", Question: "Where?", Options: []session.Option{{Label: "here"}}}
	db := dbQuestions()[0]
	tests := []struct {
		name string
		kind Kind
		qs   []session.Question
		want string // the answers, "" for none; or the error
		fail bool
	}{
		{"one", KindQuestion, []session.Question{db}, `{"answers":[{"id":"db","selected":["pg"]}]}`, false},
		{"a batch", KindLegacy, []session.Question{sure, name, db}, `{"answers":[{"id":"s","selected":[]},{"id":"n","selected":[],"custom":"7"},{"id":"db","selected":["pg"]}]}`, false},
		{"a part does not match", KindQuestion, []session.Question{db, other}, "", false},
		{"nothing matches", KindLegacy, []session.Question{other}, "", false},
		{"a label it does not have", KindQuestion, []session.Question{bad}, `answers.yaml:8: entry 4: question "bad" has no option "nowhere"; its options are "here"`, true},
		{"a label it does not have, blocking", KindLegacy, []session.Question{other, bad}, `entry 4`, true},
		{"never an approval", KindApproval, []session.Question{db}, "", false},
		{"never a plan review", KindPlanReview, []session.Question{db}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script, err := parseAnswers("answers.yaml", []byte(answersFile))
				if err != nil {
					t.Fatal(err)
				}
				s := newService(t)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var failed error
				stop := script.Serve(s, func(err error) { failed = err; cancel() })
				r := request("c", tt.kind)
				r.Questions = tt.qs
				var o Outcome
				switch tt.kind {
				case KindQuestion:
					o = s.AskTimed(ctx, r, time.Minute)
				case KindPlanReview:
					r.Questions[0].Detail = "plan"
					r.Intent = &Intent{Kind: "plan-review", Approve: "pg"}
					fallthrough
				default:
					o = s.Ask(ctx, r)
				}
				stop()
				switch {
				case tt.fail:
					if failed == nil || !strings.Contains(failed.Error(), tt.want) || o.word() != Aborted {
						t.Errorf("failed with %v, %+v", failed, o)
					}
				case failed != nil:
					t.Error(failed)
				case tt.want != "":
					if got, _ := session.BatchText(o.Answers); got != tt.want {
						t.Errorf("%s, %+v", got, o)
					}
				case tt.kind == KindQuestion && o.word() != Pending, tt.kind != KindQuestion && (o.Err == nil || o.Err.Code != CodeNoProvider):
					t.Errorf("%+v", o)
				}
				empty(t, s)
				s.mu.Lock()
				defer s.mu.Unlock()
				if len(s.watchers)+len(s.providers) != 0 {
					t.Error("the script left something behind")
				}
			})
		})
	}
}

func FuzzAnswersFile(f *testing.F) {
	f.Add(answersFile)
	f.Add("- &a [*a]\n")
	f.Add("- match: &m {id: *m}\n")
	f.Fuzz(func(t *testing.T, file string) {
		script, err := parseAnswers("f", []byte(file))
		if err != nil {
			return
		}
		// Whatever it holds, what it answers is a batch that fits.
		if batch, ok, err := script.answer(Card{Questions: dbQuestions()}); ok && err == nil {
			if bad := CheckBatch(dbQuestions(), batch); bad != nil {
				t.Error(bad)
			}
		}
	})
}
