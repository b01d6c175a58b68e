package engine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"deepseek/internal/session"
)

func told(text string) func(*Options) { return func(o *Options) { o.Instructions = text } }

func TestInstructionsEnterOnceBeforeTheTask(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("one"), says("two")}}, told("use tabs"))
	res, _ := w.run("x")
	w.wantTypes(0, `session/settings receipt receipt turn/start claim claim step/start user/message user/message header context assistant/message step/end end(completed)`)
	if got := w.heard(); got != "u:use tabs | u:x" {
		t.Errorf("model heard %s", got)
	}
	if res.Events.From != 1 {
		t.Errorf("the interval begins at %d, not at its receipt", res.Events.From)
	}
	w.run("y")
	if got := w.heard(); got != "u:use tabs | u:x | a:one | u:y" {
		t.Errorf("model heard %s", got)
	}
}

func TestInstructionsOnAResume(t *testing.T) {
	for name, c := range map[string]struct{ before, now, want string }{
		"unchanged":    {"a", "a", ""},
		"changed":      {"a", "b", instructionsChanged + "b"},
		"gone":         {"a", "", instructionsGone},
		"never any":    {"", "", ""},
		"new ones":     {"", "b", "b"},
		"said changed": {instructionsChanged + "b", "b", ""},
		"said gone":    {instructionsGone, "", ""},
		"back again":   {instructionsGone, "b", instructionsChanged + "b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := announcement(c.before, c.now); got != c.want {
				t.Errorf("announced %q, want %q", got, c.want)
			}
			// The same through the log, three runs long.
			w := start(t, newMemLog(), &play{next: []answer{says("1")}}, told(c.before))
			w.run("x")
			for range 2 {
				w = start(t, newMemLog(w.log.events...), &play{next: []answer{says("2")}}, told(c.now))
				w.run("y")
			}
			if got := strings.Count(w.heard(), "u:"+c.want+" | "); c.want != "" && got != 1 {
				t.Errorf("announced %d times: %s", got, w.heard())
			}
		})
	}
}

// TestInstructionsThatNoTurnTookAreNotToldTwice: the receipt is the fact.
func TestInstructionsThatNoTurnTookAreNotToldTwice(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("1")}}, told("a"))
	w.run("x")
	log := newMemLog(w.log.events[:3]...) // a crash behind the receipts
	r := start(t, log, &play{next: []answer{says("1"), says("2")}}, told("b"))
	r.run("y")
	if got, want := r.heard(), "u:a | u:"+instructionsChanged+"b | u:x | a:1 | u:y"; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
	log = newMemLog(w.log.events[:2]...) // the instructions did not get that far
	r = start(t, log, &play{next: []answer{says("1"), says("2")}}, told("b"))
	r.run("y")
	if got, want := r.heard(), "u:b | u:x | a:1 | u:y"; got != want {
		t.Errorf("model heard %s, want %s", got, want)
	}
}

func TestASecretInInstructionsIsNoChange(t *testing.T) {
	secret := func(o *Options) {
		o.Instructions = "KEY"
		o.Redact = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "KEY", "[key]")) }
	}
	w := start(t, newMemLog(), &play{next: []answer{says("1")}}, secret)
	w.run("x")
	w = start(t, newMemLog(w.log.events...), &play{next: []answer{says("2")}}, secret)
	w.run("y")
	if got := w.heard(); got != "u:[key] | u:x | a:1 | u:y" {
		t.Errorf("model heard %s", got)
	}
}

func TestInstructionsComeBeforeAReplyThatBeginsARun(t *testing.T) {
	w := start(t, newMemLog(), &play{next: []answer{says("1")}}, told("a"))
	reply := &Input{Target: session.NextStep, Content: text("yes"), Source: session.Source{Kind: session.SourceQuestionReply, CallID: "c"}}
	if _, _, err := w.Run(t.Context(), RunOptions{Input: reply}, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.heard(); got != "u:a | u:yes" {
		t.Errorf("model heard %s", got)
	}
}

func TestInstructionsText(t *testing.T) {
	for name, c := range map[string]struct {
		files []Instruction
		want  string
	}{
		"none":       {nil, ""},
		"blank ones": {[]Instruction{{"/a/AGENTS.md", " \n"}}, ""},
		"each under its path": {
			[]Instruction{{"/a/AGENTS.md", "\none\n\n"}, {"/a/b/AGENTS.md", "two\xff"}},
			instructionsHead + "\n# /a/AGENTS.md\n\none\n\n# /a/b/AGENTS.md\n\ntwo\uFFFD",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InstructionsText(c.files); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestInstructionsAreCutWithANote(t *testing.T) {
	for _, last := range []int{MaxInstructions - 400, MaxInstructions - 135, MaxInstructions, 3 * MaxInstructions} {
		got := InstructionsText([]Instruction{{"/a/AGENTS.md", "begin"}, {"/b/AGENTS.md", strings.Repeat("字", last/3)}, {"/c/AGENTS.md", "never"}})
		if len(got) > MaxInstructions || !utf8.ValidString(got) || strings.Contains(got, "never") && last > MaxInstructions-400 {
			t.Errorf("%d: %d bytes", last, len(got))
		}
		if cut := strings.Contains(got, "[cut here: instructions are limited to 64 KB in all. The rest of /b/AGENTS.md"); cut != (last > MaxInstructions-400) {
			t.Errorf("%d: cut %v", last, cut)
		}
	}
}

func TestInstructionsThatAreNoTextAreRefused(t *testing.T) {
	for _, c := range []struct{ name, data, odd, err string }{
		{"text", "use tabs, naïvely 你\n", "", ""},
		{"cut in a rune", "use \xe4\xbd", "", ""},
		{"UTF-16, little endian", "\xff\xfeu\x00s\x00e\x00", "", "UTF-16"},
		{"UTF-16, big endian", "\xfe\xff\x00u\x00s\x00e", "", "UTF-16"},
		{"UTF-16 without its mark", "u\x00s\x00e\x00", "", "null bytes"},
		{"an old encoding", "sch\xf6n", "byte 4 is no UTF-8", ""},
	} {
		text, odd, err := ReadInstruction([]byte(c.data))
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || text != ""):
			t.Errorf("%s: %q, %v", c.name, text, err)
		case c.err == "" && (err != nil || text != c.data || (odd == "") != (c.odd == "") || !strings.Contains(odd, c.odd)):
			t.Errorf("%s: %q, %q, %v", c.name, text, odd, err)
		}
	}
}
