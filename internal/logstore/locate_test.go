package logstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deepseek/internal/session"
)

// shelf is a store with sessions of two directories.
func shelf(t *testing.T) (s *Store, path func(id string) string) {
	s = realStore(t)
	paths := map[string]string{}
	add := func(id, cwd, origin string, times ...int64) {
		var first []session.Event
		for _, at := range times {
			e, _ := session.NewEvent(session.TypeTurnStart, at, session.TurnStart{Turn: 1})
			first = append(first, e)
		}
		l, err := s.Create(session.Header{ID: id, CreatedAt: 10, Cwd: cwd, Origin: origin}, first)
		if err != nil {
			t.Fatal(err)
		}
		paths[id] = closed(t, l)
	}
	add("20260101-000000-aaaaa", "/w", "", 100, 500)
	add("20260102-000000-bbbbb", "/w", "", 300)
	add("20260103-000000-ccccc", "/w", "subagent", 900)
	add("20260104-000000-ddddd", "/v", "", 800)
	add("20260105-000000-eeeee", "/v", "")
	return s, func(id string) string { return paths[id] }
}

func TestLocateTable(t *testing.T) {
	s, path := shelf(t)
	here := t.TempDir()
	carried := filepath.Join(here, "carried.jsonl")
	if err := errors.Join(os.WriteFile(carried, []byte(headerText), 0o600), os.Symlink(carried, filepath.Join(here, "link.jsonl")),
		os.WriteFile(filepath.Join(here, "notes.txt"), nil, 0o600), os.Mkdir(filepath.Join(here, "dir.jsonl"), 0o700)); err != nil {
		t.Fatal(err)
	}
	real, _ := filepath.EvalSymlinks(carried)
	for _, c := range []struct{ arg, cwd, path, reason, says string }{
		{"20260101-000000-aaaaa", "/x", path("20260101-000000-aaaaa"), "", ""},
		{"bbbbb", "/x", path("20260102-000000-bbbbb"), "", ""},
		{"0103-", "/x", path("20260103-000000-ccccc"), "", ""},
		{"last", "/w", path("20260101-000000-aaaaa"), "", ""},
		{"last", "/v", path("20260104-000000-ddddd"), "", ""},
		{"last", "/nowhere", "", LocateNoLast, "no session of this directory"},
		{"bbb", "/w", "", LocateShort, "at least 4"},
		{"bbb", "/w", "", LocateShort, "; near: 20260102-000000-bbbbb"},
		{"zz", "/w", "", LocateShort, "; the newest: 20260105-000000-eeeee, 2026"},
		{"", "/w", "", LocateShort, "; the newest: 20260105"},
		{"000000", "/w", "", LocateAmbiguous, "20260105-000000-eeeee, 20260104"},
		{"20260102-000000-bbbbx", "/w", "", LocateUnknown, "near: 20260102-000000-bbbbb\n"},
		{"zzzzzz", "/w", "", LocateUnknown, "; the newest: 20260105"},
		{carried, "/w", real, "", ""},
		{"./carried.jsonl", here, real, "", ""},
		{"carried.jsonl", here, real, "", ""},
		{"link.jsonl", here, real, "", ""},
		{"./notes.txt", here, "", LocateNoFile, "ends in .jsonl"},
		{"dir.jsonl", here, "", LocateNoFile, "regular file"},
		{"gone.jsonl", here, "", LocateNoFile, "no such file or directory; the newest: 20260105"},
		{"./20260102-000000-bbbbb.jsonl", here, "", LocateNoFile, "no such file or directory; near: 20260102-000000-bbbbb"},
		{path("20260101-000000-aaaaa"), "/w", path("20260101-000000-aaaaa"), "", ""},
	} {
		got, err := s.Locate(c.arg, c.cwd)
		if got != c.path {
			t.Errorf("%s: %q, %v", c.arg, got, err)
		}
		var le *LocateError
		if c.reason != "" && (!errors.As(err, &le) || le.Reason != c.reason || !strings.Contains(err.Error(), c.says) || strings.Count(err.Error(), "\n") > 2) {
			t.Errorf("%s: %v", c.arg, err)
		}
		if c.reason == "" && err != nil {
			t.Errorf("%s: %v", c.arg, err)
		}
	}
	if _, err := s.Locate("gone.jsonl", here); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := New(t.TempDir()).Locate("aaaa", "/w"); err == nil || strings.Contains(err.Error(), "near") {
		t.Errorf("an empty store: %v", err)
	}
}

func TestLastGoesByTheLatestWholeEvent(t *testing.T) {
	s, path := shelf(t)
	l := replayed(t, s, path("20260102-000000-bbbbb"))
	e, _ := session.NewEvent(session.TypeTurnStart, 700, map[string]string{"pad": strings.Repeat("x", 5*tailSize)})
	if _, err := l.Append(1, []session.Event{e}); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	if got, err := s.Locate("last", "/w"); err != nil || got != l.Path() {
		t.Fatalf("%s, %v", got, err)
	}
	// A torn line counts for nothing, however long.
	data, _ := os.ReadFile(l.Path())
	if err := os.WriteFile(l.Path(), data[:len(data)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Locate("last", "/w"); err != nil || got != path("20260101-000000-aaaaa") {
		t.Fatalf("%s, %v", got, err)
	}
}

func TestListIsNewestFirstAndShowsDamageAsEntries(t *testing.T) {
	s, path := shelf(t)
	broken := filepath.Join(s.Dir("/w"), "20260106-000000-fffff.jsonl")
	midway := filepath.Join(s.Dir("/w"), "20260107-000000-ggggg.jsonl")
	newer := filepath.Join(s.Dir("/w"), "20260108-000000-hhhhh.jsonl")
	if err := errors.Join(os.WriteFile(broken, []byte("no header\n"), 0o600),
		os.WriteFile(midway, []byte(headerText+lineText(0, "turn/start", "")+"x\nx\n"), 0o600),
		os.WriteFile(newer, []byte(strings.Replace(headerText, `"version":1`, `"version":9`, 1)), 0o600),
		os.WriteFile(filepath.Join(s.root(), "stray"), nil, 0o600),
		os.WriteFile(filepath.Join(s.Dir("/w"), ".20260109-000000-jjjjj-1.new"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, e := range list {
		order = append(order, e.ID[len(e.ID)-5:])
		switch e.Path {
		case broken, midway:
			if !errors.Is(e.Err, session.ErrDamaged) {
				t.Errorf("%+v", e)
			}
		case newer:
			if !errors.Is(e.Err, session.ErrTooNew) {
				t.Errorf("%+v", e)
			}
		default:
			if e.Err != nil || e.Header.ID != e.ID || e.Path != path(e.ID) {
				t.Errorf("%+v", e)
			}
		}
	}
	if want := strings.Fields("ccccc ddddd aaaaa bbbbb eeeee ggggg hhhhh fffff"); !slices.Equal(order, want) || list[4].UpdatedAt != 10 || list[2].UpdatedAt != 500 {
		t.Errorf("%v", order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.List(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if list, err := New(t.TempDir()).List(t.Context()); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestIDsAndFolders(t *testing.T) {
	s := New("/h", WithRandom(func(p []byte) { copy(p, []byte{0, 31, 32, 255, 18}) }))
	at := time.Date(2026, 11, 30, 18, 12, 3, 0, time.FixedZone("", 3600))
	if id := s.NewID(at); id != "20261130-171203-0z0zj" {
		t.Error(id)
	}
	a, b, long := s.Dir("/a-b"), s.Dir("/a/b"), s.Dir("/"+strings.Repeat("ä/", 900)+"end")
	if a == b || s.Dir("/a/b/") != b || !strings.HasPrefix(b, "/h/sessions/a-b-") || len(filepath.Base(long)) > 80 || !strings.Contains(long, "end-") {
		t.Error(a, b, long)
	}
	if filepath.Base(s.Dir("/"))[:5] != "root-" {
		t.Error(s.Dir("/"))
	}
	for _, h := range []session.Header{{ID: "../x", Cwd: "/w"}, {ID: "", Cwd: "/w"}, {ID: "x", Cwd: "w"}, {ID: "-x", Cwd: "/w"}} {
		if _, err := realStore(t).Create(h, nil); err == nil {
			t.Errorf("%+v was created", h)
		}
	}
}

func TestALogReachedThroughALinkHasOneLockAndOneName(t *testing.T) {
	s, path := shelf(t)
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(path("20260104-000000-ddddd"), link); err != nil {
		t.Fatal(err)
	}
	l := replayed(t, s, link)
	if l.Path() != path("20260104-000000-ddddd") {
		t.Fatal(l.Path())
	}
	var b *BusyError
	if _, err := s.Own(t.Context(), path("20260104-000000-ddddd")); !errors.As(err, &b) {
		t.Fatal(err)
	}
}
