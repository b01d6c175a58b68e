package prompt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"deepseek/internal/session"
)

// Draft is what a person had begun to answer.
type Draft struct {
	Frozen bool        `json:"frozen"` // no countdown for this card any more; true of every draft
	At     int         `json:"at"`     // the question shown
	Items  []DraftItem `json:"items"`
}

// DraftItem is the draft of one question.
type DraftItem struct {
	Row    int    `json:"row"`              // highlighted
	Marked []int  `json:"marked,omitempty"` // rows, of a multi-select
	Text   string `json:"text,omitempty"`   // free text
	Done   bool   `json:"done,omitempty"`
}

// Drafts keeps drafts between cards, keyed by session and call. A draft that cannot be read
// counts as none. It may be called from several cards at once.
type Drafts interface {
	// Load yields the draft if it was saved for the very same questions.
	Load(session, call string, questions []session.Question) (Draft, bool)
	Save(session, call string, questions []session.Question, d Draft) error
	// Drop forgets a draft; none is no error.
	Drop(session, call string) error
}

// FileDrafts keeps one session's drafts as files in a folder beside the session file.
//
// A draft is written to a file of its own, whose name follows the draft's, and takes the draft's
// place when it is whole. Who finds such a file gone meanwhile has lost nothing: a later draft,
// or the end of the question, has swept it away.
type FileDrafts struct {
	Dir string
	Log string // the session file: nothing is kept where it is gone; "" is not looked for
}

const draftExt = ".json"

type draftFile struct {
	Session   string          `json:"session"`
	Call      string          `json:"call"`
	Questions json.RawMessage `json:"questions"`
	Draft     Draft           `json:"draft"`
}

func (d FileDrafts) path(call string) string {
	name := url.PathEscape(call)
	if len(name) > 200 {
		sum := sha256.Sum256([]byte(call))
		name = hex.EncodeToString(sum[:])
	}
	return filepath.Join(d.Dir, name+draftExt)
}

// Load implements Drafts.
func (d FileDrafts) Load(id, call string, questions []session.Question) (Draft, bool) {
	data, err := os.ReadFile(d.path(call))
	if err != nil {
		return Draft{}, false
	}
	var f draftFile
	if json.Unmarshal(data, &f) != nil || f.Session != id || f.Call != call {
		return Draft{}, false
	}
	now, err := session.Marshal(questions)
	if err != nil || !bytes.Equal(now, f.Questions) {
		return Draft{}, false
	}
	return f.Draft, true
}

// Save implements Drafts. The file is replaced whole and is readable by its owner alone.
func (d FileDrafts) Save(id, call string, questions []session.Question, draft Draft) error {
	raw, err := session.Marshal(questions)
	if err != nil {
		return fmt.Errorf("save the draft: %w", err)
	}
	data, err := session.Marshal(draftFile{id, call, raw, draft})
	if err != nil {
		return fmt.Errorf("save the draft: %w", err)
	}
	if d.orphaned() {
		return nil
	}
	if err := os.MkdirAll(d.Dir, 0o700); err != nil {
		return fmt.Errorf("save the draft: %w", err)
	}
	path := d.path(call)
	err = renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(d.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("save the draft: %w", err)
	}
	if d.orphaned() { // removed meanwhile, perhaps before there was a draft to remove with it
		return d.Drop(id, call)
	}
	return d.remove(func(file, draft string) bool { return draft == path && file != draft })
}

func (d FileDrafts) orphaned() bool {
	if d.Log == "" {
		return false
	}
	_, err := os.Lstat(d.Log)
	return errors.Is(err, fs.ErrNotExist)
}

// Drop implements Drafts. The last draft takes the folder with it.
func (d FileDrafts) Drop(_, call string) error {
	path := d.path(call)
	return d.remove(func(_, draft string) bool { return draft == path })
}

// Keep drops all drafts but those of the calls. It asks for these only where
// there are drafts.
func (d FileDrafts) Keep(calls func() []string) error {
	if !d.exist() {
		return nil
	}
	kept := map[string]bool{}
	for _, call := range calls() {
		kept[d.path(call)] = true
	}
	return d.remove(func(_, draft string) bool { return !kept[draft] })
}

// exist tells whether anybody has kept drafts. A link is no folder of ours.
func (d FileDrafts) exist() bool {
	info, err := os.Lstat(d.Dir)
	return err == nil && info.IsDir()
}

// remove removes files by what they are: a draft, or what is to become that draft, or was left
// behind where a process died before it did. Other files stay.
func (d FileDrafts) remove(which func(file, draft string) bool) error {
	if !d.exist() {
		return nil
	}
	files, err := os.ReadDir(d.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for drafts: %w", err)
	}
	var failed error
	for _, f := range files {
		name, ok := draftName(f.Name())
		if file := filepath.Join(d.Dir, f.Name()); ok && which(file, filepath.Join(d.Dir, name)) {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = errors.Join(failed, fmt.Errorf("drop the draft: %w", err))
			}
		}
	}
	_ = os.Remove(d.Dir) // fails while drafts are in it, as it should
	return failed
}

// draftName is the name of the draft that a file is, or is written for: renameio puts a dot before
// that and digits behind it.
func draftName(file string) (draft string, ok bool) {
	name := strings.TrimRight(file, "0123456789")
	if name != file {
		if name, ok = strings.CutPrefix(name, "."); !ok {
			return "", false
		}
	}
	return name, strings.HasSuffix(name, draftExt)
}

// draft is the state as a draft.
func (s *cardState) draft() Draft {
	d := Draft{Frozen: true, At: s.at, Items: make([]DraftItem, len(s.items))}
	for i := range s.items {
		it := &s.items[i]
		d.Items[i] = DraftItem{Row: it.row, Text: s.redact(it.texts[len(it.texts)-1].text), Done: it.done}
		for row, m := range it.marked {
			if m {
				d.Items[i].Marked = append(d.Items[i].Marked, row)
			}
		}
	}
	return d
}

// restore takes a draft up. What does not fit the questions is left out.
func (s *cardState) restore(d Draft) {
	if len(d.Items) != len(s.items) {
		return
	}
	s.freeze() // what keeps the countdown away is that there is a draft
	s.note = "your draft is back"
	if len(s.items) > 1 {
		s.at = max(min(d.At, len(s.items)), 0)
	}
	for i, from := range d.Items {
		it := &s.items[i]
		it.row = max(min(from.Row, s.rows(i)-1), 0)
		it.done = from.Done
		it.texts[len(it.texts)-1] = field{from.Text, len(from.Text)}
		for _, row := range from.Marked {
			if row >= 0 && row < len(it.marked) {
				it.marked[row] = true
			}
		}
	}
}
