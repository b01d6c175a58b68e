package files_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/permission"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/files"
	"deepseek/internal/tool/search"
)

// The words that must not get around: of what tools never read, and of what
// write and edit must not tell of.
const (
	hidden  = "HIDDEN-WORD"
	distant = "DISTANT-WORD"
)

// world is a workspace with what lies around it, and the tools as a session has
// them: checked calls, the workspace-write level, nobody to ask.
type world struct {
	t                      testing.TB
	dir, ws                string
	tools                  *tool.Registry
	around                 map[string]string // of all that lies beside the workspace
	inside                 map[string]string // the workspace as it is
	readDistant, succeeded bool
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, ws: dir + "/ws"}
	for _, d := range []string{"ws/.git", "ws/sub/deep", "outside/in", "home/sessions", "user"} {
		if err := os.MkdirAll(dir+"/"+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"ws/a.txt": "one\ntwo\none two\n\tthree\n", "ws/crlf.txt": "one\r\ntwo\r\n\r\none\r\n", "ws/bom.txt": "\xEF\xBB\xBFone\r\ntwo",
		"ws/mixed.txt": "one\ntwo\r\none\nthree", "ws/sub/b.txt": "aaaa\na\ra\n", "ws/sub/deep/c.go": "package c\n", "ws/.gitignore": "*.o\n/sub/deep/\n",
		"ws/raw": "one\xff\ntwo\n", "ws/bin": "one\x00\n", "ws/new\nline": "one\n", "ws/\xff\xfe": "one\n",
		"outside/o.txt": distant + "\none\n", "outside/in/p.txt": distant + "\n", "home/config.yaml": "model: " + hidden + "\n",
		"home/key": hidden + "\n", "home/sessions/s.jsonl": "{}\n", "user/u.txt": distant + "\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"hard": "ws/a.txt", "hardkey": "home/key", "sub/hardconf": "home/config.yaml"} {
		if err := os.Link(dir+"/"+target, w.ws+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	policy, err := permission.New(permission.Config{
		Level: permission.WorkspaceWrite, Approve: permission.ApproveAsk, Cwd: w.ws, Home: dir + "/home", SocketDir: dir + "/home/sock",
		KeyFile: dir + "/home/key", ConfigFiles: []string{dir + "/home/config.yaml"}, SessionPaths: []string{dir + "/home/sessions/s.jsonl"},
		Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	all := append(files.New(files.Env{Cwd: w.ws, Guard: policy, Observed: &files.Observed{}}), search.New(search.Env{Cwd: w.ws, Guard: policy})...)
	if w.tools, err = tool.NewRegistry(all...); err != nil {
		t.Fatal(err)
	}
	w.around, w.inside = w.beside(), w.state(w.ws)
	return w
}

func (w *world) beside() map[string]string {
	all := map[string]string{}
	for _, d := range []string{"outside", "home", "user"} {
		maps.Copy(all, w.state(w.dir+"/"+d))
	}
	return all
}

// state is everything that is below a folder: the kind, the mode, the content.
func (w *world) state(dir string) map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		switch fi.Mode().Type() {
		case 0:
			content, err = os.ReadFile(path)
		case fs.ModeSymlink:
			var target string
			target, err = os.Readlink(path)
			content = []byte(target)
		}
		all[path] = fi.Mode().String() + " " + string(content)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// quoted is a JSON string with the very bytes of s, UTF-8 or not.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(rune(c)))
		case c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + `"`
}

// call runs a call as the engine does and holds it to the rules.
func (w *world) call(name string, args map[string]string, flags string) tool.Result {
	w.t.Helper()
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(args)) {
		parts = append(parts, quoted(key)+":"+quoted(args[key]))
	}
	raw := "{" + strings.Join(parts, ",") + flags + "}"
	tl, checked, bad := w.tools.Check(name, raw)
	if bad != nil {
		return *bad
	}
	// Some of these walk the whole machine.
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Millisecond)
	if name == "write" || name == "edit" || name == "read" {
		ctx, cancel = context.WithTimeout(w.t.Context(), 2*time.Minute)
	}
	defer cancel()
	begun := time.Now()
	res := tl.Run(ctx, tool.Call{ID: "c", Arguments: checked})
	if took := time.Since(begun); took > time.Minute {
		w.t.Fatalf("%s %s took %v", name, raw, took)
	}
	if res.Code != "" && !strings.HasPrefix(res.Content, res.Code+": ") {
		w.t.Fatalf("%s %s: %+v", name, raw, res)
	}
	w.judge(name, raw, args, strings.Contains(flags, "true"), res)
	return res
}

func (w *world) judge(name, raw string, args map[string]string, all bool, res tool.Result) {
	w.t.Helper()
	told := res.Content
	if res.Meta != nil {
		told += res.Meta.Diff
	}
	if strings.Contains(told, hidden) {
		w.t.Fatalf("%s %s told what no tool may: %s", name, raw, told)
	}
	changes := name == "write" || name == "edit"
	if has := strings.Contains(told, distant); has && changes && !w.readDistant {
		w.t.Fatalf("%s %s told what lies outside: %s", name, raw, told)
	} else if has {
		w.readDistant = true
	}
	if now := w.beside(); !maps.Equal(now, w.around) {
		w.t.Fatalf("%s %s changed what lies outside: %v, before %v", name, raw, now, w.around)
	}
	before, now := w.inside, w.state(w.ws)
	w.inside = now
	if res.Code != "" || !changes {
		if made := added(before, now); len(made) > 0 || !maps.Equal(now, before) {
			w.t.Fatalf("%s %s: %s; changed %q", name, raw, res.Content, made)
		}
		return
	}
	w.succeeded = true
	if res.Meta == nil { // it has this content already
		if !maps.Equal(now, before) {
			w.t.Fatalf("%s %s changed something and does not say so", name, raw)
		}
		return
	}
	w.changed(name, raw, res.Meta, args, all, before, now)
}

// changed holds a change to what was asked for: this file has these bytes, and
// besides its other names and new folders on the way to it nothing is different.
func (w *world) changed(name, raw string, meta *session.ToolMeta, args map[string]string, all bool, before, now map[string]string) {
	w.t.Helper()
	at := meta.Path
	if !strings.HasPrefix(at, w.ws+"/") {
		w.t.Fatalf("%s %s wrote to %s", name, raw, at)
	}
	mode, got, _ := strings.Cut(now[at], " ")
	oldMode, old, existed := strings.Cut(before[at], " ")
	if existed && mode != oldMode {
		w.t.Fatalf("%s %s: mode %s became %s", name, raw, oldMode, mode)
	}
	if name == "write" && got != args["content"] {
		w.t.Fatalf("%s %s: wrote %q", name, raw, got)
	}
	if name == "edit" {
		if why := judgeEdit(old, args["old_string"], args["new_string"], got, all); why != "" {
			w.t.Fatalf("%s %s: %q became %q: %s", name, raw, old, got, why)
		}
	}
	was, err := os.Stat(at)
	if err != nil {
		w.t.Fatal(err)
	}
	for path := range now {
		fi, err := os.Lstat(path)
		_, known := before[path]
		switch {
		case before[path] == now[path] && known:
		case err == nil && os.SameFile(fi, was):
		case err == nil && !known && fi.IsDir() && strings.HasPrefix(at, path+"/"):
		default:
			w.t.Fatalf("%s %s changed %s too (%v)", name, raw, path, err)
		}
	}
	for path := range before {
		if _, ok := now[path]; !ok {
			w.t.Fatalf("%s %s removed %s", name, raw, path)
		}
	}
}

func added(before, now map[string]string) (names []string) {
	for name := range now {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// judgeEdit is the rule of edit in its plainest form. A byte order mark stays and is
// no part of the text. In a text without CRLF it is a replacement of bytes. In one
// whose every line ends in CRLF it is one of the text with LF, put back. In a text of
// both kinds it is that but for which kind of end a new line gets.
func judgeEdit(before, old, repl, got string, all bool) (why string) {
	const bom = "\xEF\xBB\xBF"
	lf := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	if text, ok := strings.CutPrefix(before, bom); ok {
		if got, ok = strings.CutPrefix(got, bom); !ok {
			return "the byte order mark is gone"
		}
		before = text
	}
	n := 1
	if all {
		n = -1
	}
	crlf, ends := strings.Count(before, "\r\n"), strings.Count(before, "\n")
	switch {
	case crlf == 0:
		if want := strings.Replace(before, old, repl, n); got != want {
			return fmt.Sprintf("want %q", want)
		}
	case crlf == ends:
		if want := strings.ReplaceAll(strings.Replace(lf(before), lf(old), lf(repl), n), "\n", "\r\n"); got != want {
			return fmt.Sprintf("want %q", want)
		}
	case !strings.Contains(old, "\r\n"):
		if want := lf(strings.Replace(lf(before), old, lf(repl), n)); lf(got) != want {
			return fmt.Sprintf("but for line ends want %q", want)
		}
	}
	if !all && crlf < ends {
		// What stands in front of the match and behind it has the same bytes.
		if front := before[:places(before, strings.Index(lf(before), lf(old)))]; !strings.HasPrefix(got, front) && !strings.Contains(old, "\r\n") {
			return fmt.Sprintf("%q in front is different", front)
		}
	}
	return ""
}

// places is how many bytes of a text stand in front of the nth byte of it with LF.
func places(text string, n int) int {
	at := 0
	for range n {
		if strings.HasPrefix(text[at:], "\r\n") {
			at++
		}
		at++
	}
	return at
}

func FuzzToolsStayInTheWorkspace(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		(&program{newWorld(t), data[:min(len(data), 1000)]}).run()
	})
}

// The same with bytes from a fixed source, so that every run of the tests has it.
func TestToolsStayInTheWorkspace(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	done := 0
	for i := range rounds {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		data := make([]byte, 400)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		w := newWorld(t)
		(&program{w, data}).run()
		if w.succeeded {
			done++
		}
	}
	if done < rounds/3 {
		t.Errorf("only %d of %d rounds changed anything: the test does not test", done, rounds)
	}
}

// A command may swap a folder for a link at any moment. Calls that run meanwhile
// succeed or fail, and what lies around the workspace stays as it is.
func TestCallsRaceAFolderThatIsSwappedForALink(t *testing.T) {
	for _, target := range []string{"../outside", "../outside/in", "../home", "/proc/self/root", ".git"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.t = t
			dir, aside := w.ws+"/swap", w.ws+"/aside"
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, place := range []string{dir, w.dir + "/outside", w.dir + "/outside/in", w.ws + "/.git"} {
				if err := os.WriteFile(place+"/known", []byte("one\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			before, git := w.beside(), w.state(w.ws+"/.git")
			stop := make(chan struct{})
			var swapper sync.WaitGroup
			swapper.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_ = os.Rename(dir, aside) // each of these may come in the way of a write
					_ = os.Symlink(target, dir)
					_ = os.Remove(dir)
					_ = os.Rename(aside, dir)
				}
			})
			run := func(name, args string) tool.Result {
				tl, checked, bad := w.tools.Check(name, args)
				if bad != nil {
					t.Fatal(bad.Content)
				}
				return tl.Run(t.Context(), tool.Call{ID: "c", Arguments: checked})
			}
			done := map[string]int{}
			begun := time.Now()
			enough := func() bool {
				took := time.Since(begun)
				return took > time.Minute || took > 200*time.Millisecond && done["new"] > 0 && done["edit"]+done["over"] > 0
			}
			for i := 0; !enough(); i++ {
				count := func(what string, r tool.Result) {
					if r.Code == "" {
						done[what]++
					}
				}
				count("new", run("write", fmt.Sprintf(`{"file_path":"swap/new%d/f","content":"x"}`, i%20)))
				run("read", `{"file_path":"swap/known"}`)
				count("edit", run("edit", `{"file_path":"swap/known","old_string":"one","new_string":"two"}`))
				count("edit", run("edit", `{"file_path":"swap/known","old_string":"two","new_string":"one"}`))
				count("over", run("write", fmt.Sprintf(`{"file_path":"swap/known","content":"one %d\n"}`, i)))
			}
			close(stop)
			swapper.Wait()
			if now := w.beside(); !maps.Equal(now, before) {
				t.Errorf("changed outside: %v, before %v", now, before)
			}
			if now := w.state(w.ws + "/.git"); target != ".git" && !maps.Equal(now, git) {
				t.Errorf("changed: %v", now)
			}
			if done["new"] == 0 || done["edit"]+done["over"] == 0 {
				t.Errorf("the race was not run: %v", done)
			}
			for path := range w.state(w.ws) {
				if strings.Contains(path, ".deepseek-") {
					t.Errorf("left behind: %s", path)
				}
			}
		})
	}
}
