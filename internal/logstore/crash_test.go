package logstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"deepseek/internal/session"
)

const testID = "20261130-171203-7f3kq"

var testHeader = session.Header{ID: testID, CreatedAt: 1000, Cwd: "/w"}

// event is the i-th event of a test's session.
func event(i int) session.Event {
	e, err := session.NewEvent(session.TypeTurnStart, int64(2000+i), map[string]any{"turn": i, "pad": strings.Repeat("x", i%7)})
	if err != nil {
		panic(err)
	}
	return e
}

func events(from, to int) []session.Event {
	var list []session.Event
	for i := from; i < to; i++ {
		list = append(list, event(i))
	}
	return list
}

// memStore draws its random parts from a counter.
func memStore(m *memFS) *Store {
	n := byte(0)
	return New("/h", withFS(m), WithProbe(func(context.Context, string) bool { return false }), WithRandom(func(p []byte) {
		n++
		for i := range p {
			p[i] = n
		}
	}))
}

// life is a session from creation to close, and what it was told is safe.
type life struct {
	created bool
	acked   int // events
	given   int // events handed over
	err     error
}

// live creates, appends, syncs and closes, and goes on after an error as far
// as the log lets it.
func live(s *Store) (r life) {
	l, err := s.Create(testHeader, events(0, 2))
	if err != nil {
		r.err = err
		return r
	}
	r.created, r.acked, r.given = true, 2, 2
	add := func(n int, sync bool) {
		if _, err := l.Append(l.Next(), events(r.given, r.given+n)); err != nil {
			r.err = err
			return
		}
		r.given += n
		synctest.Wait() // the bytes are with the system
		if !sync {
			return
		}
		if err := l.Sync(context.Background()); err != nil {
			r.err = err
			return
		}
		r.acked = r.given
	}
	add(1, true)
	add(2, false)
	add(1, true)
	add(1, false)
	add(1, false)
	add(3, true)
	add(1, false)
	if err := l.Announce(Owner{PID: 1, Socket: "/s", Session: testID}); err != nil && r.err == nil {
		r.err = err
	}
	if err := l.Close(); err != nil {
		r.err = err
	} else if r.err == nil {
		r.acked = r.given
	}
	return r
}

// afterlives is every disk that the crash of m may leave.
func afterlives(m *memFS, try func(string, *memFS)) {
	pending := 0
	unsynced := 0
	for _, d := range m.dirs {
		pending = max(pending, len(d.pending))
		for _, n := range d.live {
			unsynced = max(unsynced, len(n.live)-len(n.disk))
		}
	}
	for names := range uint(1) << pending {
		for kept := 0; kept <= unsynced; kept += 1 + min(max(unsynced-kept-1, 0), unsynced/60) {
			for _, holes := range []bool{false, true} {
				a := aftermath{names: names, holes: holes, older: kept%2 == 0, bytes: func(n int) int { return min(n, kept) }}
				try(fmt.Sprintf("names %b, %d of %d bytes, holes %v", names, kept, unsynced, holes), m.reboot(a))
			}
		}
	}
}

// checkAfter opens what a crash left and goes on with it.
func checkAfter(t *testing.T, m *memFS, r life) {
	t.Helper()
	ctx := context.Background()
	s := memStore(m)
	path := s.Dir("/w") + "/" + testID + ".jsonl"
	before := m.content(path)
	if before == nil {
		if r.created {
			t.Fatal("the session is gone")
		}
		l, err := s.Create(testHeader, events(0, 2))
		if err != nil {
			t.Fatalf("create again: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if names, _ := m.ReadDir(s.Dir("/w")); len(names) != 1 {
			t.Fatalf("the first try left something behind: %q", names)
		}
		return
	}

	f, err := m.OpenRead(path)
	if err != nil {
		t.Fatal(err)
	}
	end, err := readFrom(ctx, f, path, nil, func(Line) error { return nil })
	if err != nil {
		t.Fatalf("read: %v", err)
	}

	l, err := s.Own(ctx, path)
	if err != nil {
		t.Fatalf("own: %v", err)
	}
	n := 0
	err = l.Replay(ctx, func(e session.Event) error {
		want := event(n)
		want.Seq = int64(n)
		if !bytes.Equal(e.AppendLine(nil), want.AppendLine(nil)) {
			return fmt.Errorf("event %d is %s", n, e.AppendLine(nil))
		}
		n++
		return nil
	})
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	if n < r.acked || n > max(r.given, 2) {
		t.Fatalf("%d events, %d acknowledged, %d given", n, r.acked, r.given)
	}
	if end.Next != int64(n) || int(end.Torn) != l.TornBytes() || l.Next() != int64(n) {
		t.Fatalf("a reader saw %+v, the owner %d events and %d torn bytes", end, n, l.TornBytes())
	}
	if !bytes.Equal(m.content(path), before) {
		t.Fatal("opening changed the file")
	}
	if _, err := l.Append(int64(n), events(n, n+1)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Sync(ctx), l.Close()); err != nil {
		t.Fatal(err)
	}
	whole := before[:len(before)-l.TornBytes()]
	want := event(n)
	want.Seq = int64(n)
	if got := m.content(path); !bytes.Equal(got, want.AppendLine(bytes.Clone(whole))) {
		t.Fatalf("after the repair the file is\n%s", got)
	}
	if torn := m.content(TornPath(path)); !bytes.HasSuffix(torn, before[len(whole):]) {
		t.Fatalf("the tail %q was not set aside but %q", before[len(whole):], torn)
	}
}

func TestWhatWasAcknowledgedSurvivesACrashBeforeEveryCall(t *testing.T) {
	for dieAt := 1; ; dieAt++ {
		m := newMemFS()
		m.dieAt = dieAt
		var r life
		synctest.Test(t, func(*testing.T) { r = live(memStore(m)) })
		if !m.dead {
			if dieAt < 20 {
				t.Fatalf("only %d calls: %v", dieAt, m.trace)
			}
			break
		}
		call := m.trace[len(m.trace)-1]
		afterlives(m, func(what string, after *memFS) {
			t.Run("", func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("crash before call %d, %s: %s; %+v", dieAt, call, what, r)
					}
				}()
				checkAfter(t, after, r)
			})
		})
		if t.Failed() {
			return
		}
	}
}

// A disk that keeps a later block of what was never synced and loses an earlier
// one leaves a hole before whole lines. That is not told from damage, and it is
// reported as such; what was acknowledged is still there, untouched.
func TestAHoleBeforeWholeLinesIsReportedAndNothingIsCut(t *testing.T) {
	m := newMemFS()
	l, err := memStore(m).Create(testHeader, events(0, 2))
	if err != nil {
		t.Fatal(err)
	}
	acked := len(m.content(l.Path()))
	if _, err := l.Append(2, events(2, 5)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data := m.content(l.Path())
	for from := acked; from < len(data); from += 3 {
		for to := from + 1; to <= len(data); to += 4 {
			after := newMemFS()
			holed := bytes.Clone(data)
			clear(holed[from:to])
			after.put(l.Path(), holed)
			if bytes.Count(data[to:], []byte("\n")) <= 1 { // all that follows is one line with it
				checkAfter(t, after, life{created: true, acked: 2, given: 5})
				continue
			}
			log, err := memStore(after).Own(t.Context(), l.Path())
			if err == nil { // the beginnings of the lines are whole
				err = log.Replay(t.Context(), func(session.Event) error { return nil })
				if err := log.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var damage *DamageError
			if !errors.As(err, &damage) || damage.Offset < int64(acked) || damage.Offset > int64(from) || !bytes.Equal(after.content(l.Path()), holed) {
				t.Fatalf("zeros from %d to %d: %v", from, to, err)
			}
		}
	}
}

func TestAFailingCallLosesNothingAcknowledgedAndEndsTheLog(t *testing.T) {
	for _, failing := range []bool{false, true} {
		for failAt := 1; ; failAt++ {
			m := newMemFS()
			m.failAt, m.failing = failAt, failing
			var r life
			synctest.Test(t, func(*testing.T) { r = live(memStore(m)) })
			if !m.hit() {
				break
			}
			call := m.trace[failAt-1]
			what := fmt.Sprintf("call %d, %s, fails (and so do all later ones: %v): %+v", failAt, call, failing, r)
			harmless := strings.HasSuffix(call, ".new") && strings.HasPrefix(call, "remove") && !failing
			if !harmless && (r.err == nil || !strings.Contains(r.err.Error(), "no space left on device")) {
				t.Fatalf("%s: the error does not reach the caller", what)
			}
			m.failAt = 0
			checkAfter(t, m, r) // the file was cut back while the system goes on
			if t.Failed() {
				t.Fatal(what)
			}
		}
	}
}

func TestAFailedLogStaysFailed(t *testing.T) {
	for _, call := range []string{"write", "sync"} {
		m := newMemFS()
		s := memStore(m)
		l, err := s.Create(testHeader, events(0, 2))
		if err != nil {
			t.Fatal(err)
		}
		good := m.content(l.Path())
		m.failAt = m.calls + 1
		if call == "sync" {
			m.failAt++
		}
		if _, err := l.Append(2, events(2, 3)); err != nil {
			t.Fatal(err)
		}
		var failed *WriteError
		err = l.Sync(t.Context())
		if !errors.As(err, &failed) || failed.Path != l.Path() || !errors.Is(err, m.err) {
			t.Fatalf("%s: %v", call, err)
		}
		if !bytes.Equal(m.content(l.Path()), good) {
			t.Fatalf("%s: the file was not cut back", call)
		}
		m.failAt = 0
		if _, again := l.Append(3, events(3, 4)); !errors.Is(again, err) {
			t.Fatalf("append: %v", again)
		}
		if again := l.Sync(t.Context()); !errors.Is(again, err) {
			t.Fatalf("sync: %v", again)
		}
		if again := l.Close(); !errors.Is(again, err) {
			t.Fatalf("close: %v", again)
		}
		again, err := s.Own(t.Context(), l.Path())
		if err != nil || again.Next() != 2 {
			t.Fatalf("the lock or an event is lost: %v", err)
		}
		closed(t, again)
	}
}

// torn is a file whose last line was cut.
func torn() (file []byte, whole int) {
	l := newMemFS()
	log, err := memStore(l).Create(testHeader, events(0, 4))
	if err != nil {
		panic(err)
	}
	data := l.content(log.Path())
	_ = log.Close()
	cut := len(data) - 9
	return data[:cut], bytes.LastIndexByte(data[:cut], '\n') + 1
}

func TestRepairIsIdempotentWhereverItIsCutShort(t *testing.T) {
	data, whole := torn()
	s := memStore(newMemFS())
	path := s.Dir("/w") + "/" + testID + ".jsonl"
	repair := func(m *memFS) error {
		l, err := memStore(m).Own(context.Background(), path)
		if err != nil {
			return err
		}
		err = l.Replay(context.Background(), func(session.Event) error { return nil })
		return errors.Join(err, l.Repair(context.Background()), l.Close())
	}
	check := func(t *testing.T, m *memFS) {
		t.Helper()
		if err := repair(m); err != nil {
			t.Fatal(err)
		}
		if got := m.content(path); !bytes.Equal(got, data[:whole]) {
			t.Fatalf("the log is %q", got)
		}
		if got := m.content(TornPath(path)); !bytes.HasSuffix(got, data[whole:]) {
			t.Fatalf("the tail is %q", got)
		}
	}
	for dieAt := 1; ; dieAt++ {
		m := newMemFS()
		m.put(path, data)
		m.dieAt = dieAt
		synctest.Test(t, func(*testing.T) { _ = repair(m) })
		if !m.dead {
			m.dieAt = 0
			check(t, m)
			if got := m.content(TornPath(path)); !bytes.Equal(got, data[whole:]) {
				t.Fatalf("a second repair made a second copy: %q", got)
			}
			break
		}
		afterlives(m, func(_ string, after *memFS) { check(t, after) })
	}
	for failAt := 1; ; failAt++ {
		m := newMemFS()
		m.put(path, data)
		m.failAt = failAt
		var err error
		synctest.Test(t, func(*testing.T) { err = repair(m) })
		if !m.hit() {
			break
		}
		var failed *WriteError
		clearing := strings.HasPrefix(m.trace[failAt-1], "remove ") // of what a killed owner left, in nobody's way
		if ok := errors.As(err, &failed) && failed.Path == path; !ok && !clearing || clearing && err != nil {
			t.Fatalf("%s fails: %v", m.trace[failAt-1], err)
		}
		m.failAt = 0
		check(t, m)
	}
}

func TestARemovalThatIsCutShortLeavesAWholeSessionOrNone(t *testing.T) {
	data, whole := torn()
	s := memStore(newMemFS())
	path := s.Dir("/w") + "/" + testID + ".jsonl"
	beside := []string{TornPath(path), OwnerPath(path), SpillDir(path), DraftsDir(path)}
	for dieAt := 1; ; dieAt++ {
		m := newMemFS()
		m.put(path, data[:whole])
		for _, p := range beside {
			m.put(p, []byte("x"))
		}
		m.dieAt = dieAt
		err := memStore(m).Remove(t.Context(), path)
		if !m.dead {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		afterlives(m, func(what string, after *memFS) {
			s := memStore(after)
			found, err := s.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(found) == 0 {
				s.sweep(s.Dir("/w"))
			}
			for _, p := range append(beside, path) {
				if ok, _ := after.Exists(p); ok != (len(found) == 1) {
					t.Fatalf("crash before %s, %s: %d sessions, %s is there: %v", m.trace[len(m.trace)-1], what, len(found), p, ok)
				}
			}
			if names, _ := after.ReadDir(s.Dir("/w")); len(found) == 0 && len(names) > 0 {
				t.Fatalf("left behind: %q", names)
			}
		})
	}
}
