package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-runewidth"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

// sessionRow is one session of the list.
type sessionRow struct {
	ID            string `json:"id"`
	Path          string `json:"path"`
	Cwd           string `json:"cwd"`
	CreatedAt     int64  `json:"createdAt"` // ms since the epoch
	UpdatedAt     int64  `json:"updatedAt"` // of the latest event, ms since the epoch
	Live          bool   `json:"live"`
	Questions     int    `json:"questions"` // that wait for an answer; one whose answer is queued does not
	Task          string `json:"task"`      // its first words
	ParentSession string `json:"parentSession,omitempty"`
	Error         string `json:"error,omitempty"` // why the file cannot be read; the rest is what is known
}

func runSessionsList(ctx context.Context, a *App, o sessionsOptions) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	a.lookForKey()
	rows, err := sessionRows(ctx, a.store(home), a.key(), o.all)
	if err != nil {
		return err
	}
	switch {
	case o.json:
		return a.printJSON(rows)
	case len(rows) == 0:
		a.Warnf("deepseek: there are no sessions yet; begin one with: deepseek run TASK\n")
	default:
		a.printTable(a.sessionTable(rows, time.Now()))
	}
	return nil
}

// sessionRows is all sessions, the latest used first.
func sessionRows(ctx context.Context, store *logstore.Store, key redact.Key, all bool) ([]sessionRow, error) {
	paths, err := store.Paths()
	if err != nil {
		return nil, err
	}
	owned, err := store.Owned()
	if err != nil {
		return nil, err
	}
	list := make([]listed, len(paths))
	inParallel(len(paths), func(i int) {
		list[i] = readListed(ctx, store, key, paths[i], all)
		if owned[paths[i]] && !errors.Is(list[i].Err, errUnlisted) {
			_, list[i].live = store.LiveOwner(ctx, paths[i])
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	list = slices.DeleteFunc(list, func(l listed) bool {
		return errors.Is(l.Err, errUnlisted) || errors.Is(l.Err, logstore.ErrNotFound) // removed since
	})
	slices.SortStableFunc(list, func(a, b listed) int { return logstore.Newest(a.Entry, b.Entry) })
	rows := make([]sessionRow, len(list)) // never null
	for i, l := range list {
		rows[i] = l.row()
	}
	return rows, nil
}

// listed is what one reading of a log tells for the list.
type listed struct {
	logstore.Entry
	live      bool
	questions int
	task      string
}

// errUnlisted ends the reading of a sub-agent's session, where only roots are asked for.
var errUnlisted = errors.New("a sub-agent's session")

func readListed(ctx context.Context, store *logstore.Store, key redact.Key, path string, all bool) listed {
	l := listed{Entry: logstore.Entry{ID: logstore.IDOf(path), Path: path}}
	var asks askFold
	first := taskFold{key: key}
	end, err := logstore.Scan(ctx, path, func(h session.Header) error {
		if !all && h.Origin == originSubagent {
			return errUnlisted
		}
		asks.questions.Of(h)
		return nil
	}, func(line logstore.Line) error {
		return line.Damaged(errors.Join(asks.apply(line), first.apply(line)))
	})
	l.task = first.task
	if err == nil {
		l.Header, l.UpdatedAt = end.Header, end.UpdatedAt
		l.questions, err = asks.waitingFor(ctx, path, end)
	} else if !errors.Is(err, errUnlisted) {
		l.Entry = store.Entry(path) // of a damaged one, its two ends may be whole
	}
	if l.Err == nil {
		l.Err = err
	}
	return l
}

func (l listed) row() sessionRow {
	r := sessionRow{
		ID: l.ID, Path: l.Path, Cwd: l.Header.Cwd, CreatedAt: l.Header.CreatedAt, UpdatedAt: l.UpdatedAt,
		Live: l.live, Questions: l.questions, Task: l.task, ParentSession: l.Header.ParentSession,
	}
	if l.Err != nil {
		r.Error = oneLine(l.Err.Error())
	}
	return r
}

// taskFold finds the first words of the task: of the first message that was
// given to the session itself, or of the goal where that is a round of it.
type taskFold struct {
	key   redact.Key // taken out before the words are cut
	task  string
	found bool
	goal  string // first words of the objective as it stands
}

// taskWords is the length of a task in a list, in characters.
const taskWords = 100

func (f *taskFold) apply(l logstore.Line) error {
	if l.Type == session.TypeEndSeed {
		f.found = false // what came before is the parent session's
		return nil
	}
	if f.found {
		return nil
	}
	switch l.Type {
	case session.TypeGoalChange:
		return f.set(l)
	case session.TypeInboxSpliced, session.TypeUserMessage:
	default:
		return nil
	}
	if l.Type == session.TypeInboxSpliced && bytes.Contains(l.Raw, []byte(`"inserted":[]`)) {
		return nil
	}
	e, err := l.Event()
	if err != nil {
		return err
	}
	var v struct {
		Inserted []session.UserMessage `json:"inserted"` // of a splice
		session.UserMessage
	}
	if err := json.Unmarshal(f.key.Bytes(e.Data), &v); err != nil {
		return fmt.Errorf("%w: %s: %w", session.ErrDamaged, e.Type, session.PlainJSON(err))
	}
	for _, m := range append(v.Inserted, v.UserMessage) {
		switch m.Source.Kind {
		case "", session.SourceAgentInstructions, session.SourceQuestionReply:
			continue
		case session.SourceGoal: // its text is the program's
			f.task, f.found = f.goal, true
		default:
			f.task, f.found = firstWords(session.TextOf(m.Content)), true
		}
		break
	}
	return nil
}

// set takes note of the goal.
func (f *taskFold) set(l logstore.Line) error {
	e, err := l.Event()
	if err != nil {
		return err
	}
	var v session.GoalChange
	if err := json.Unmarshal(f.key.Bytes(e.Data), &v); err != nil {
		return fmt.Errorf("%w: %s: %w", session.ErrDamaged, e.Type, session.PlainJSON(err))
	}
	f.goal = ""
	if v.Goal != nil {
		f.goal = firstWords(v.Goal.Objective)
	}
	return nil
}

func firstWords(text string) string {
	text = text[:min(len(text), 8*taskWords)] // a task can be a whole book
	r := []rune(oneLine(strings.ToValidUTF8(text, "")))
	if len(r) > taskWords {
		return string(r[:taskWords-1]) + "…"
	}
	return string(r)
}

// inParallel calls do for 0 to n-1, several at once, and returns when all have
// returned. Some wait for an owner that does not answer, so there are more of
// them than processors.
func inParallel(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, 4*runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// sessionTable is the rows in columns. On a terminal the last two share what
// room there is, so that a row is one line.
func (a *App) sessionTable(rows []sessionRow, now time.Time) [][]string {
	out := [][]string{{"session", "age", "state", "waiting", "directory", "task"}}
	for _, r := range rows {
		state, waiting, task := "idle", "-", r.Task
		if r.Live {
			state = "live"
		}
		if r.Questions > 0 {
			waiting = strconv.Itoa(r.Questions)
		}
		if r.Error != "" {
			state, task = "unread", r.Error
		}
		out = append(out, []string{r.ID, age(r.UpdatedAt, now), state, waiting, a.folder(r.Cwd), oneLine(task)})
	}
	if a.OutTerminal() {
		return a.squeeze(out)
	}
	return out
}

// age is the time since a moment, for people.
func age(ms int64, now time.Time) string {
	if ms <= 0 {
		return "?"
	}
	switch d := max(now.Sub(time.UnixMilli(ms)), 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// printJSON writes a value to stdout, with text as it is.
func (a *App) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	a.Printf("%s", b.Bytes())
	return nil
}

// Room for the last two columns, at least, in columns of a terminal.
const (
	minFolder = 8
	minTask   = 12
)

// squeeze makes the rows of a table fit the terminal: it cuts the last two
// columns, a folder at its beginning and a task at its end. Where that leaves too
// little of the task, columns go: the folder, the state, the age.
func (a *App) squeeze(table [][]string) [][]string {
	taken := func(column int) int {
		widest := 0
		for _, row := range table {
			widest = max(widest, runewidth.StringWidth(row[column]))
		}
		return widest + 2
	}
	room := a.Width() - 1
	for column := range 4 {
		room -= taken(column)
	}
	folders := 0
	if room >= minFolder+2+minTask {
		folders = max(min(taken(4)-2, (room-2)*2/5), minFolder)
		room -= folders + 2
	}
	var gone []int
	if folders == 0 {
		gone = append(gone, 4)
	}
	for _, column := range []int{2, 1} {
		if room < minTask {
			gone, room = append(gone, column), room+taken(column)
		}
	}
	out := make([][]string, len(table))
	for i, row := range table {
		row[4], row[5] = a.fitEnd(row[4], folders), view.Fit(view.Visible(row[5]), max(room, 1), a.ellipsis())
		for column, cell := range row {
			if !slices.Contains(gone, column) {
				out[i] = append(out[i], cell)
			}
		}
	}
	return out
}

// fitEnd keeps the end of a text, which tells folders apart.
func (a *App) fitEnd(s string, columns int) string {
	if runewidth.StringWidth(s) <= columns {
		return s
	}
	mark := a.ellipsis()
	r := []rune(s)
	for len(r) > 0 && runewidth.StringWidth(string(r))+runewidth.StringWidth(mark) > columns {
		r = r[1:]
	}
	return mark + string(r)
}

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
