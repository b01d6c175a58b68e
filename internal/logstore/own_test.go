package logstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/session"
)

// realStore is a store on the real disk whose owners never answer.
func realStore(t *testing.T, opts ...Option) *Store {
	silent := WithProbe(func(context.Context, string) bool { return false })
	return New(filepath.Join(t.TempDir(), "home"), append([]Option{silent}, opts...)...)
}

func create(t *testing.T, s *Store, n int) *Log {
	t.Helper()
	h := testHeader
	h.ID = s.NewID(time.Date(2026, 11, 30, 17, 12, 3, 0, time.UTC))
	l, err := s.Create(h, events(0, n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func closed(t *testing.T, l *Log) string {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Path()
}

func replayed(t *testing.T, s *Store, path string) *Log {
	t.Helper()
	l, err := s.Own(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Replay(t.Context(), func(session.Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheLastRecordTornAtEveryByte(t *testing.T) {
	s := realStore(t)
	path := closed(t, create(t, s, 4))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	for cut := whole; cut < len(data); cut++ {
		if err := errors.Join(os.WriteFile(path, data[:cut], 0o600), os.RemoveAll(TornPath(path))); err != nil {
			t.Fatal(err)
		}
		l := replayed(t, s, path)
		if l.Next() != 3 || l.TornBytes() != cut-whole {
			t.Fatalf("cut at %d: next %d, %d torn", cut, l.Next(), l.TornBytes())
		}
		if cut%2 == 0 {
			closed(t, l) // refused: not a byte may change
			if now, _ := os.ReadFile(path); !bytes.Equal(now, data[:cut]) {
				t.Fatalf("cut at %d: opening changed the file", cut)
			}
			continue
		}
		if _, err := l.Append(3, events(3, 4)); err != nil {
			t.Fatal(err)
		}
		closed(t, l)
		if now, _ := os.ReadFile(path); !bytes.Equal(now, data) {
			t.Fatalf("cut at %d: the file is %q", cut, now)
		}
		tail, err := os.ReadFile(TornPath(path))
		if cut > whole && (err != nil || !bytes.Equal(tail, data[whole:cut])) {
			t.Fatalf("cut at %d: set aside %q, %v", cut, tail, err)
		}
		if info, err := os.Stat(TornPath(path)); err == nil && info.Mode().Perm() != 0o600 {
			t.Fatalf("mode %v", info.Mode())
		}
	}
}

func TestOfManyContendersOneOwns(t *testing.T) {
	t.Parallel() // it waits for a second
	s := realStore(t)
	path := closed(t, create(t, s, 1))
	owned := make(chan *Log, 8)
	busy := make(chan error, 8)
	for range 8 {
		go func() {
			l, err := s.Own(context.Background(), path)
			if err != nil {
				busy <- err
				return
			}
			owned <- l
		}()
	}
	l := <-owned
	for range 7 {
		var b *BusyError
		if err := <-busy; !errors.As(err, &b) || b.PID != 0 || b.Path != path {
			t.Fatalf("a second owner, or %v", err)
		}
	}
	closed(t, l)
	closed(t, replayed(t, s, path))
}

func TestAContenderLearnsThePidFromTheOwnerWhoseSocketAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				_, _ = conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"))
			}
			_ = conn.Close()
		}
	})
	s := New(filepath.Join(t.TempDir(), "home"))
	s.busy = time.Minute // for the answer
	l := create(t, s, 1)
	if err := l.Announce(Owner{PID: 4711, Socket: socket, StartedAt: 9, Session: "root-id"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Own(t.Context(), l.Path())
	var b *BusyError
	if !errors.As(err, &b) || *b != (BusyError{Path: l.Path(), PID: 4711, Socket: socket, Session: "root-id"}) {
		t.Fatalf("%v", err)
	}
	if o, err := ReadOwner(l.Path()); err != nil || o.StartedAt != 9 {
		t.Fatalf("%+v, %v", o, err)
	}
	if info, err := os.Stat(OwnerPath(l.Path())); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	_ = server.Close()
	answering.Wait()
	if _, ok := s.LiveOwner(t.Context(), l.Path()); ok {
		t.Fatal("a dead socket answered")
	}
	closed(t, l)
	if _, err := ReadOwner(l.Path()); !errors.Is(err, ErrNotFound) {
		t.Fatalf("the owner file stayed: %v", err)
	}
}

// An owner that was killed leaves its owner file, or a half-written one. Who
// has the session next, for however short a time, leaves nothing.
func TestTheNextOwnerClearsWhatAKilledOneLeft(t *testing.T) {
	for _, announce := range []bool{false, true} {
		s := New(filepath.Join(t.TempDir(), "home"))
		l := create(t, s, 1)
		closed(t, l)
		for _, left := range []string{OwnerPath(l.Path()), replacingPath(OwnerPath(l.Path()))} {
			if err := os.WriteFile(left, []byte(`{"pid":1,"sock`), 0o400); err != nil {
				t.Fatal(err)
			}
		}
		l = replayed(t, s, l.Path())
		if announce {
			if err := l.Announce(Owner{PID: 4711, Socket: "/s"}); err != nil {
				t.Fatal(err)
			}
			if o, err := ReadOwner(l.Path()); err != nil || o.PID != 4711 {
				t.Fatalf("%+v, %v", o, err)
			}
		}
		closed(t, l)
		names, err := osFS{}.ReadDir(filepath.Dir(l.Path()))
		if err != nil || len(names) != 1 {
			t.Fatalf("announced: %v: left over: %q, %v", announce, names, err)
		}
	}
}

// Creating a session clears the folder of the owner files of the dead, and of no other.
func TestCreatingSweepsTheOwnerFilesOfTheDead(t *testing.T) {
	s := New(filepath.Join(t.TempDir(), "home"))
	alive, dead := create(t, s, 1), create(t, s, 1)
	if err := alive.Announce(Owner{PID: 4711, Socket: "/s"}); err != nil {
		t.Fatal(err)
	}
	closed(t, dead)
	gone := filepath.Join(filepath.Dir(dead.Path()), "20261130-171203-00000.jsonl")
	left := []string{OwnerPath(dead.Path()), replacingPath(OwnerPath(dead.Path())), OwnerPath(gone), replacingPath(OwnerPath(gone))}
	for _, name := range append(left, replacingPath(OwnerPath(alive.Path()))) {
		if err := os.WriteFile(name, []byte(`{"pid":1}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, create(t, s, 1))
	for _, name := range left {
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{OwnerPath(alive.Path()), replacingPath(OwnerPath(alive.Path()))} {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	closed(t, alive)
	closed(t, replayed(t, s, dead.Path()))
}

func TestASilentSocketIsNoOwner(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if ping(ctx, socket) {
		t.Fatal("nobody answered")
	}
}

func TestOwnWaitsASecondForAnOwnerToSayWhoItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemFS()
		up := false
		s := New("/h", withFS(m), WithProbe(func(context.Context, string) bool { return up }))
		l, err := s.Create(testHeader, nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var b *BusyError
		if _, err := s.Own(t.Context(), l.Path()); !errors.As(err, &b) || b.PID != 0 || time.Since(start) != busyWait {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		start = time.Now()
		time.AfterFunc(300*time.Millisecond, func() {
			up = true
			if err := l.Announce(Owner{PID: 7, Socket: "/s", Session: testID}); err != nil {
				t.Error(err)
			}
		})
		if _, err := s.Own(t.Context(), l.Path()); !errors.As(err, &b) || b.PID != 7 || time.Since(start) > 350*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		up = false
		time.AfterFunc(500*time.Millisecond, func() { _ = l.Close() })
		again, err := s.Own(t.Context(), l.Path())
		if err != nil {
			t.Fatalf("the lock was given up within the second: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := s.Own(ctx, l.Path()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestARemovalRacingOpenersLeavesNoGhostOwner(t *testing.T) {
	s := realStore(t)
	s.busy = time.Minute // a lock that is held for long is another matter
	for range 30 {
		path := closed(t, create(t, s, 1))
		if err := os.Mkdir(SpillDir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		var removed atomic.Bool
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				l, err := s.Own(context.Background(), path)
				if err == nil {
					if removed.Load() {
						t.Error("owns what is gone")
					}
					err = l.Close()
				}
				if err != nil && !errors.Is(err, ErrNotFound) {
					t.Errorf("open: %v", err)
				}
			})
		}
		all.Go(func() {
			if err := s.Remove(context.Background(), path); err != nil {
				t.Errorf("remove: %v", err)
			}
			removed.Store(true)
		})
		all.Wait()
		if names, _ := os.ReadDir(filepath.Dir(path)); len(names) > 0 {
			t.Fatalf("left: %v", names)
		}
	}
}

func TestRemoveTakesEverythingAndNeitherALiveSessionNorMore(t *testing.T) {
	t.Parallel() // it waits for a second
	s := realStore(t)
	l, other := create(t, s, 1), create(t, s, 1)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, DraftsDir(l.Path())); err != nil {
		t.Fatal(err)
	}
	f, err := l.Spill().Create("x")
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	var b *BusyError
	if err := s.Remove(t.Context(), l.Path()); !errors.As(err, &b) {
		t.Fatalf("a live session: %v", err)
	}
	closed(t, l)
	if err := s.Remove(t.Context(), l.Path()); err != nil {
		t.Fatal(err)
	}
	names, _ := os.ReadDir(filepath.Dir(l.Path()))
	if len(names) != 1 || names[0].Name() != filepath.Base(other.Path()) {
		t.Fatalf("left: %v", names)
	}
	if _, err := os.Stat(filepath.Join(outside, "keep")); err != nil {
		t.Fatal("a link was followed")
	}
	if err := s.Remove(t.Context(), l.Path()); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

func TestConcurrentCreationsOfOneIDGiveOneSession(t *testing.T) {
	s := realStore(t)
	h := testHeader
	h.Cwd = t.TempDir()
	results := make(chan error, 8)
	logs := make(chan *Log, 8)
	for range 8 {
		go func() {
			l, err := s.Create(h, events(0, 3))
			if err == nil {
				logs <- l
			}
			results <- err
		}()
	}
	won := 0
	for range 8 {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, ErrExists):
			t.Fatal(err)
		}
	}
	if won != 1 {
		t.Fatalf("%d creations won", won)
	}
	closed(t, <-logs)
	if names, _ := os.ReadDir(s.Dir(h.Cwd)); len(names) != 1 {
		t.Fatalf("left: %v", names)
	}
}

// The umask belongs to the whole process, so this runs in one of its own.
func TestModesWhateverTheUmask(t *testing.T) {
	if mask := os.Getenv("LOGSTORE_TEST_UMASK"); mask != "" {
		var n int
		if _, err := fmt.Sscanf(mask, "%o", &n); err != nil {
			t.Fatal(err)
		}
		syscall.Umask(n)
		s := New(filepath.Join(os.Getenv("LOGSTORE_TEST_HOME"), "home"))
		l := create(t, s, 1)
		f, err := l.Spill().Create("x")
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if err := l.Announce(Owner{PID: 1}); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]os.FileMode{
			s.home: 0o700, s.root(): 0o700, s.Dir("/w"): 0o700, l.Path(): 0o600,
			SpillDir(l.Path()): 0o700, f.Path(): 0o600, OwnerPath(l.Path()): 0o600,
		} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("umask %s: %s: %v, %v", mask, path, info.Mode(), err)
			}
		}
		return
	}
	for _, mask := range []string{"0", "0777"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestModesWhateverTheUmask$")
		cmd.Env = append(os.Environ(), "LOGSTORE_TEST_UMASK="+mask, "LOGSTORE_TEST_HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("umask %s: %v\n%s", mask, err, out)
		}
	}
}

func TestNoDescriptorOutlivesItsOwner(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(names)
	}
	s := realStore(t, WithProbe(func(context.Context, string) bool { return true }))
	damaged := filepath.Join(t.TempDir(), "d.jsonl")
	if err := os.WriteFile(damaged, []byte(headerText+"x\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := count()
	for range 5 {
		l := create(t, s, 2)
		if _, err := s.Create(l.Header(), nil); !errors.Is(err, ErrExists) {
			t.Fatal(err)
		}
		if err := l.Announce(Owner{PID: 1, Socket: "/s", Session: "x"}); err != nil {
			t.Fatal(err)
		}
		var b *BusyError
		if _, err := s.Own(t.Context(), l.Path()); !errors.As(err, &b) {
			t.Fatal(err)
		}
		if _, err := s.Own(t.Context(), damaged); !errors.Is(err, session.ErrDamaged) {
			t.Fatal(err)
		}
		c, err := l.Cursor(0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := l.Spill().Create("x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Close(), f.Close(), l.Close(), s.Remove(t.Context(), l.Path())); err != nil {
			t.Fatal(err)
		}
	}
	if after := count(); after != before {
		t.Fatalf("%d descriptors before, %d after", before, after)
	}
}
