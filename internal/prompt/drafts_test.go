package prompt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

func TestFileDrafts(t *testing.T) {
	d := FileDrafts{Dir: filepath.Join(t.TempDir(), "drafts")}
	qs := []session.Question{colours}
	draft := Draft{Frozen: true, Items: []DraftItem{{Row: 3, Text: "mauve\n<&>", Marked: []int{1}}}}
	for _, call := range []string{"call_1", "a:ptc:2", "../up", "x/y", ".", strings.Repeat("é", 300)} {
		if err := d.Save("s", call, qs, draft); err != nil {
			t.Fatal(call, err)
		}
		got, ok := d.Load("s", call, qs)
		if !ok || got.Items[0].Text != draft.Items[0].Text || got.Items[0].Marked[0] != 1 {
			t.Fatal(call, got, ok)
		}
		if _, ok := d.Load("other", call, qs); ok {
			t.Fatal("another session's draft")
		}
		other := colours
		other.Question += "?"
		if _, ok := d.Load("s", call, []session.Question{other}); ok {
			t.Fatal("a draft for other questions")
		}
	}
	entries, _ := os.ReadDir(d.Dir)
	for _, e := range entries {
		info, _ := e.Info()
		if info.Mode().Perm() != 0o600 {
			t.Fatal(e.Name(), info.Mode())
		}
	}
	if info, _ := os.Stat(d.Dir); info.Mode().Perm() != 0o700 {
		t.Fatal(info.Mode())
	}
	if len(entries) != 6 {
		t.Fatal("names collide or escape: ", entries)
	}
	if err := d.Drop("s", "call_1"); err != nil {
		t.Fatal(err)
	}
	if err := d.Drop("s", "call_1"); err != nil {
		t.Fatal("dropping none:", err)
	}
	if err := os.WriteFile(d.path("a:ptc:2"), []byte(`{"draft":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Load("s", "a:ptc:2", qs); ok {
		t.Fatal("a damaged draft")
	}
}

// withDrafts is a stage whose drafts lie in dir.
func withDrafts(t *testing.T, dir string, remaining time.Duration) *stage {
	s := newStage(t, remaining)
	s.prompt.Drafts = FileDrafts{Dir: dir}
	return s
}

func TestADraftComesBackFrozenAndGoesWithTheAnswer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	synctest.Test(t, func(t *testing.T) {
		s := withDrafts(t, dir, time.Minute).start(batch())
		s.press("\r", "Ann", ctrlC)
		s.ends(Interrupted)
		if _, err := os.Stat(dir); err != nil {
			t.Fatal(err)
		}
		s = withDrafts(t, dir, time.Second).start(batch())
		s.sees("Name (2/3)", "Ann", "your draft is back", "no countdown")
		s.pass(time.Minute)
		s.press("a\r", "\r", "\r")
		s.ends(Answered)
		s.told("respond:c=red;n=/Anna;m=one")
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Fatal("the draft stayed", err)
		}
	})
}

func TestADraftIsSavedWhileTyping(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	synctest.Test(t, func(t *testing.T) {
		s := withDrafts(t, dir, time.Minute).start(timedCard(colours))
		s.press("mau")
		s.pass(draftWait)
		if d, ok := s.prompt.Drafts.Load("s1", "call_1", []session.Question{colours}); !ok || d.Items[0].Text != "mau" {
			t.Fatal(d, ok)
		}
		s.press(ctrlC)
		s.ends(Interrupted)
	})
}

func TestKeepingDrafts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	d := FileDrafts{Dir: dir}
	if err := d.Keep(func() []string { t.Error("asked for nothing"); return nil }); err != nil {
		t.Fatal("without a folder:", err)
	}
	long := strings.Repeat("x", 300)
	for _, call := range []string{"a", "a:ptc:1", "b/../c", long} {
		if err := d.Save("s1", call, []session.Question{colours}, Draft{}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want ...string) {
		t.Helper()
		for _, call := range []string{"a", "a:ptc:1", "b/../c", long} {
			if _, ok := d.Load("s1", call, []session.Question{colours}); ok != slices.Contains(want, call) {
				t.Errorf("%.10s: %v", call, ok)
			}
		}
	}
	keep := func(calls ...string) {
		t.Helper()
		if err := d.Keep(func() []string { return calls }); err != nil {
			t.Fatal(err)
		}
	}
	keep("a:ptc:1", long, "b/../c", "not there")
	has("a:ptc:1", long, "b/../c")
	keep(long)
	has(long)
	keep()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the folder stayed:", err)
	}
}

func TestKeepingDraftsFollowsNoLink(t *testing.T) {
	outside, dir := t.TempDir(), filepath.Join(t.TempDir(), "d")
	file := filepath.Join(outside, "mine.json")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(outside, dir)); err != nil {
		t.Fatal(err)
	}
	if err := (FileDrafts{Dir: dir}).Keep(func() []string { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestNoDraft(t *testing.T) {
	legacy := timedCard(colours)
	legacy.Timed, legacy.Blocking = false, true
	for name, c := range map[string]struct {
		card Card
		keys []string
	}{
		"untouched": {timedCard(colours), []string{down}}, "legacy": {legacy, []string{"x"}}, "approval": {approvalCard(), []string{down, "\r", "words"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			synctest.Test(t, func(t *testing.T) {
				s := withDrafts(t, dir, time.Minute).start(c.card)
				s.press(c.keys...)
				s.pass(2 * draftWait)
				s.press(ctrlC)
				s.ends(Interrupted)
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Fatal("a draft was kept", err)
				}
			})
		})
	}
}

func TestADraftThatDoesNotFitIsHarmless(t *testing.T) {
	for _, d := range []Draft{
		{},
		{At: -3, Items: make([]DraftItem, 3)},
		{At: 99, Items: make([]DraftItem, 3)},
		{Items: []DraftItem{{Row: 99, Marked: []int{-1, 7}}, {Row: -1}, {Marked: []int{99}}}},
	} {
		s := newState(batch())
		s.restore(d)
		fits(t, s.view(epoch, 40, 12), 40, 12)
		press(s, keyDown, keyEnter, "x", keyEnter)
	}
}

func TestALateAnswerKeepsTheDraftForAsLongAsItMayBeTakenBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	synctest.Test(t, func(t *testing.T) {
		late := timedCard(colours)
		late.Continued = true
		s := withDrafts(t, dir, 0)
		s.desk.late = func(context.Context, []session.Answer) (bool, error) {
			if d, ok := s.prompt.Drafts.Load("s1", "call_1", late.Questions); !ok || d.Items[0].Text != "mauve" {
				t.Error("it is not on disk before the answer is sent:", d, ok)
			}
			return true, s.prompt.Drafts.Drop("s1", "call_1") // the owner, where the reply is read at once
		}
		s.start(late)
		s.press("mauve", "\r")
		s.ends(LateAnswered)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Error("the card has saved it again:", err)
		}

		s = withDrafts(t, dir, 0).start(late)
		s.press("mauve", "\r")
		s.ends(LateAnswered)
		s = withDrafts(t, dir, 0).start(late)
		s.sees("mauve", "your draft is back")
		s.press(ctrlC)
		s.ends(Interrupted)
	})
}
