package prompt

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"deepseek/internal/session"
)

// TestWhatADeathLeftOfADraftGoes: a process that ends while it saves leaves a file behind, which
// goes with the next draft of the call, or with the question.
func TestWhatADeathLeftOfADraftGoes(t *testing.T) {
	const left, others, foreign = ".call_1.json1465893309", ".call_2.json7", "notes.txt"
	for name, c := range map[string]struct {
		do   func(FileDrafts) error
		want []string
	}{
		"with the next draft": {func(d FileDrafts) error {
			return d.Save("s", "call_1", []session.Question{colours}, Draft{})
		}, []string{others, "call_1.json", foreign}},
		"when it is dropped": {func(d FileDrafts) error { return d.Drop("s", "call_1") }, []string{others, foreign}},
		"when others are kept": {func(d FileDrafts) error {
			return d.Keep(func() []string { return []string{"call_2"} })
		}, []string{others, foreign}},
		"not while the question is kept: it may be just being written": {func(d FileDrafts) error {
			return d.Keep(func() []string { return []string{"call_1", "call_2"} })
		}, []string{left, others, foreign}},
	} {
		t.Run(name, func(t *testing.T) {
			d := FileDrafts{Dir: t.TempDir()}
			for _, name := range []string{left, others, foreign} {
				if err := os.WriteFile(filepath.Join(d.Dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.do(d); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(d.Dir)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("there are %q, want %q", names, c.want)
			}
		})
	}
	t.Run("and takes the folder along", func(t *testing.T) {
		d := FileDrafts{Dir: filepath.Join(t.TempDir(), "d")}
		if err := os.Mkdir(d.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Dir, left), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.Keep(func() []string { return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(d.Dir); !os.IsNotExist(err) {
			t.Error("the folder stayed:", err)
		}
	})
}

func TestDraftNames(t *testing.T) {
	for file, want := range map[string]string{
		"call_1.json": "call_1.json", ".call_1.json77": "call_1.json", ".x.json": ".x.json", "..x.json7": ".x.json",
		"call_1.json77": "", "call_1": "", ".call_1": "", "77": "", "": "",
	} {
		if got, ok := draftName(file); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q %v, want %q", file, got, ok, want)
		}
	}
}

func TestNoDraftIsKeptOfASessionThatIsGone(t *testing.T) {
	dir := t.TempDir()
	d := FileDrafts{Dir: filepath.Join(dir, "s.drafts"), Log: filepath.Join(dir, "s.jsonl")}
	if err := d.Save("s", "call_1", []session.Question{colours}, Draft{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Dir); !os.IsNotExist(err) {
		t.Fatal("a draft without a session:", err)
	}
	if err := os.WriteFile(d.Log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Save("s", "call_1", []session.Question{colours}, Draft{}); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Load("s", "call_1", []session.Question{colours}); !ok {
		t.Error("no draft where there is a session")
	}
}
