package logstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

func TestConcurrentSyncsShareOneFsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemFS()
		l, err := memStore(m).Create(testHeader, nil)
		if err != nil {
			t.Fatal(err)
		}
		entered, leave := make(chan struct{}), make(chan struct{})
		m.onSync = func() {
			entered <- struct{}{}
			<-leave
		}
		before := m.syncs
		acks := make(chan error, 100)
		ask := func() { acks <- l.Sync(context.Background()) }
		if _, err := l.Append(0, events(0, 1)); err != nil {
			t.Fatal(err)
		}
		go ask()
		<-entered // the first fsync is on its way; all who come now share the next
		for i := 1; i < 100; i++ {
			if _, err := l.Append(int64(i), events(i, i+1)); err != nil {
				t.Fatal(err)
			}
			go ask()
		}
		synctest.Wait()
		if l.Durable() != 0 {
			t.Fatalf("durable %d before the first fsync is over", l.Durable())
		}
		leave <- struct{}{}
		<-entered
		synctest.Wait()
		if len(acks) != 1 || l.Durable() != 1 {
			t.Fatalf("%d acknowledged after the first fsync, durable %d", len(acks), l.Durable())
		}
		leave <- struct{}{}
		for range 100 {
			if err := <-acks; err != nil {
				t.Fatal(err)
			}
		}
		if n := m.syncs - before; n != 2 || l.Durable() != 100 {
			t.Fatalf("%d fsyncs, durable %d", n, l.Durable())
		}
		m.onSync = nil
		if err := errors.Join(l.Sync(t.Context()), l.Close()); err != nil || m.syncs-before != 2 {
			t.Fatalf("a sync of nothing: %v, %d fsyncs", err, m.syncs-before)
		}
	})
}

func TestTheEndOfAContextEndsTheWaitAndNotTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemFS()
		l, err := memStore(m).Create(testHeader, nil)
		if err != nil {
			t.Fatal(err)
		}
		entered, leave := make(chan struct{}), make(chan struct{})
		m.onSync = func() { entered <- struct{}{}; <-leave }
		if _, err := l.Append(0, events(0, 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error)
		go func() { result <- l.Sync(ctx) }()
		<-entered
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		leave <- struct{}{}
		synctest.Wait()
		if l.Durable() != 1 {
			t.Fatal("the fsync was undone")
		}
		m.onSync = nil
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSyncOfAFailedLogFailsEvenIfNothingIsOutstanding(t *testing.T) {
	data, _ := torn()
	m := newMemFS()
	s := memStore(m)
	path := s.Dir("/w") + "/" + testID + ".jsonl"
	m.put(path, data)
	l := replayed(t, s, path)
	m.failAt = m.calls + 1
	if err := l.Repair(t.Context()); !errors.Is(err, m.err) {
		t.Fatal(err)
	}
	if err := l.Sync(t.Context()); !errors.Is(err, m.err) {
		t.Fatal(err)
	}
	if !bytes.Equal(m.content(path), data) {
		t.Fatal("a tail that could not be set aside was cut off")
	}
}

func TestAppendRefusals(t *testing.T) {
	s := realStore(t)
	l := create(t, s, 2)
	for name, e := range map[string]session.Event{
		"no object":    {Type: "turn/start", Data: json.RawMessage(`[]`)},
		"no data":      {Type: "turn/start"},
		"no JSON":      {Type: "turn/start", Data: json.RawMessage(`{"x":}`)},
		"two values":   {Type: "turn/start", Data: json.RawMessage(`{}}`)},
		"a newline":    {Type: "turn/start", Data: json.RawMessage("{\n}")},
		"a new type":   {Type: "moon/phase", Data: json.RawMessage(`{}`)},
		"no type":      {Data: json.RawMessage(`{}`)},
		"an odd type":  {Type: "a\"b", Data: json.RawMessage(`{}`)},
		"two lines":    {Type: "turn/start", Data: json.RawMessage("{}}\n{")},
		"a wild type":  {Type: "a\x00b", Data: json.RawMessage(`{}`)},
		"a smuggled e": {Type: "turn/start", Data: json.RawMessage(`{},"seq":9,"x":{}`)},
	} {
		if _, err := l.Append(2, []session.Event{event(2), e}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if next, err := l.Append(3, events(2, 3)); !errors.Is(err, ErrConflict) || next != 2 {
		t.Fatalf("%d, %v", next, err)
	}
	if next, err := l.Append(2, nil); err != nil || next != 2 {
		t.Fatalf("%d, %v", next, err)
	}
	batch := events(2, 4)
	if next, err := l.Append(2, batch); err != nil || next != 4 || batch[1].Seq != 3 {
		t.Fatalf("%d, %v, %+v", next, err, batch)
	}
	path := closed(t, l)
	if _, err := l.Append(4, events(4, 5)); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := l.Sync(t.Context()); err != nil {
		t.Fatalf("everything is on disk: %v", err)
	}
	if err := l.Replay(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := l.Announce(Owner{}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal("a second close:", err)
	}
	again, err := s.Own(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Append(4, events(4, 5)); !errors.Is(err, ErrUnverified) {
		t.Fatal(err)
	}
	closed(t, again)
}

func TestReplayChecksEveryLineWhole(t *testing.T) {
	s := realStore(t)
	path := closed(t, create(t, s, 4))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte(`"turn":1`))
	data[at] = 'x' // behind what a scan looks at
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := s.Own(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var damage *DamageError
	err = l.Replay(t.Context(), func(session.Event) error { return nil })
	if !errors.As(err, &damage) || damage.Line != 3 || damage.Offset != int64(bytes.LastIndexByte(data[:at], '\n')+1) {
		t.Fatal(err)
	}
	if _, err := l.Append(4, events(4, 5)); !errors.Is(err, ErrUnverified) {
		t.Fatal(err)
	}
	closed(t, l)
	if now, _ := os.ReadFile(path); !bytes.Equal(now, data) {
		t.Fatal("the file was changed")
	}
}

func TestRedactionReachesHeaderAndEventsAndTheCallersBatch(t *testing.T) {
	redact := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("sk-secret"), []byte("[key]")) }
	s := realStore(t, WithRedact(redact))
	h := testHeader
	h.ParentSession = "sk-secret"
	e, _ := session.NewEvent("turn/start", 1, map[string]string{"x": "a sk-secret b"})
	l, err := s.Create(h, []session.Event{e})
	if err != nil {
		t.Fatal(err)
	}
	batch := []session.Event{e}
	if _, err := l.Append(1, batch); err != nil || !strings.Contains(string(batch[0].Data), "a [key] b") {
		t.Fatalf("%v, %s", err, batch[0].Data)
	}
	if l.Header().ParentSession != "[key]" {
		t.Fatalf("%+v", l.Header())
	}
	data, _ := os.ReadFile(closed(t, l))
	if bytes.Contains(data, []byte("secret")) || bytes.Count(data, []byte("[key]")) != 3 || !bytes.HasPrefix(data, append(l.HeaderLine(), '\n')) {
		t.Fatalf("%s", data)
	}
	closed(t, replayed(t, s, l.Path()))
}

func TestManyCursorsSeeEveryDurableLineOnceAndInOrder(t *testing.T) {
	const total = 2000
	s := realStore(t)
	l := create(t, s, 3)
	var all sync.WaitGroup
	for from := range int64(12) {
		c, err := l.Cursor(from * 100)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer func() { _ = c.Close() }()
			want := from * 100
			for {
				lines, err := c.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, line := range lines {
					e, err := line.Event()
					if err != nil || line.Seq != want || e.Seq != want || line.Type != session.TypeTurnStart || want >= l.Durable() {
						t.Errorf("line %d, event %d, durable %d, want %d, %v", line.Seq, e.Seq, l.Durable(), want, err)
						return
					}
					want++
				}
			}
			if want != total {
				t.Errorf("from %d: ended at %d", from*100, want)
			}
		})
	}
	for i := 3; i < total; i += 7 {
		n := min(i+7, total)
		if _, err := l.Append(int64(i), events(i, n)); err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			if err := l.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	closed(t, l)
	all.Wait()
	if _, err := l.Cursor(0); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}

	again := replayed(t, s, l.Path())
	for from := int64(0); from <= total; from += 51 {
		c, err := again.Cursor(from)
		if err != nil {
			t.Fatal(err)
		}
		for want := from; want < total; want++ {
			lines, err := c.Read(1) // one line at a time
			if err != nil || len(lines) != 1 || lines[0].Seq != want || c.Seq() != want+1 {
				t.Fatalf("%+v, %v, want %d", lines, err, want)
			}
			if want > from+3 {
				break
			}
		}
		_ = c.Close()
	}
	c, err := again.Cursor(total)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if lines, err := c.Read(100); lines != nil || err != nil {
		t.Fatalf("%v, %v", lines, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := again.Cursor(-1); err == nil {
		t.Fatal("a negative place")
	}
}

// A reader that wants pages of a size gets them, whatever lies behind an event
// that is longer.
func TestAPageIsAsLongAsItMayBeOrOneEvent(t *testing.T) {
	const limit = 4096
	l := create(t, realStore(t), 1)
	for i, size := range []int{10, 10, limit + limit/16, 1500, 1500, 1500, 20 * limit, 20 * limit, 10, 10} {
		e, err := session.NewEvent(session.TypeTurnStart, 1, map[string]string{"x": strings.Repeat("x", size)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(int64(1+i), []session.Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := l.Cursor(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var pages []int
	for c.Seq() < l.Durable() {
		lines, err := c.Read(limit)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, line := range lines {
			size += len(line.Raw) + 1
		}
		if size > limit && len(lines) > 1 {
			t.Errorf("%d events of %d bytes", len(lines), size)
		}
		pages = append(pages, len(lines))
	}
	if want := []int{3, 1, 2, 1, 1, 1, 2}; !slices.Equal(pages, want) {
		t.Errorf("pages of %v events, want %v", pages, want)
	}
}

func TestACursorOfAFailedLogGivesWhatIsOnDiskAndThenTheFailure(t *testing.T) {
	m := newMemFS()
	l, err := memStore(m).Create(testHeader, events(0, 2))
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Cursor(1)
	if err != nil {
		t.Fatal(err)
	}
	m.failAt = m.calls + 1
	if _, err := l.Append(2, events(2, 3)); err != nil {
		t.Fatal(err)
	}
	if lines, err := c.Next(t.Context()); err != nil || len(lines) != 1 || lines[0].Seq != 1 {
		t.Fatalf("%v, %v", lines, err)
	}
	var failed *WriteError
	if _, err := c.Next(t.Context()); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.As(err, &failed) {
		t.Fatal(err)
	}
}

// spill shows that the folder serves as the tools' own.
type spill struct{ *Spill }

func (s spill) Create(hint string) (tool.SpillFile, error) { return s.Spill.Create(hint) }

func TestSpill(t *testing.T) {
	s := realStore(t)
	l := create(t, s, 1)
	var folder tool.Spill = spill{l.Spill()}
	names := map[string]bool{}
	for _, hint := range []string{"call_1", "call_1", "../../etc/passwd", "", ".hidden", "a/b c", strings.Repeat("x", 300), "--help"} {
		f, err := folder.Create(hint)
		if err != nil {
			t.Fatalf("%q: %v", hint, err)
		}
		if _, err := f.Write([]byte(hint)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if names[f.Name()] || filepath.Dir(f.Path()) != SpillDir(l.Path()) || filepath.Base(f.Path()) != f.Name() || strings.HasPrefix(f.Name(), "-") {
			t.Errorf("%q: %s", hint, f.Path())
		}
		names[f.Name()] = true
		if data, err := os.ReadFile(f.Path()); err != nil || string(data) != hint {
			t.Errorf("%q: %q, %v", hint, data, err)
		}
	}
	if !names["call_1"] || !names["call_1.2"] {
		t.Errorf("%v", names)
	}
}

func TestASpillFolderOrFileThatIsALinkIsNotFollowed(t *testing.T) {
	s := realStore(t)
	l, elsewhere := create(t, s, 1), t.TempDir()
	if err := os.Symlink(elsewhere, SpillDir(l.Path())); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Spill().Create("x"); err == nil {
		t.Fatal("the folder was followed")
	}
	if err := errors.Join(os.Remove(SpillDir(l.Path())), os.Mkdir(SpillDir(l.Path()), 0o700),
		os.Symlink(filepath.Join(elsewhere, "x"), filepath.Join(SpillDir(l.Path()), "x"))); err != nil {
		t.Fatal(err)
	}
	f, err := l.Spill().Create("x")
	if err != nil || f.Name() != "x.2" {
		t.Fatalf("%v, %v", f, err)
	}
	_ = f.Close()
	if names, _ := os.ReadDir(elsewhere); len(names) > 0 {
		t.Fatal("the link was followed")
	}
}
