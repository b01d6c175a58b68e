package acp_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/cli"
)

func TestMain(m *testing.M) {
	if os.Getenv("ACP_TEST_AGENT") != "" { // for clients that start the program themselves
		os.Exit(cli.Main(append([]string{"deepseek"}, os.Args[1:]...), cli.Std(), os.Environ()))
	}
	// Tests wait more than they work, so more of them run at the same time than there
	// are processors. A -parallel on the command line stands against it.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// patience bounds every wait for something that has to come.
const patience = time.Minute

// world is a home, a workspace and a scripted model.
type world struct {
	t        *testing.T
	home, ws string
	script   string
	env      []string
}

func newWorld(t *testing.T, script string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws"), script: filepath.Join(dir, "script.yaml")}
	for _, d := range []string{w.home, w.ws, filepath.Join(dir, "run")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.script, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"HOME=" + dir, "DEEPSEEK_HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	return w
}

// command runs another command of the program to its end.
func (w *world) command(args ...string) (code int, out, errs string) {
	w.t.Helper()
	var o, e bytes.Buffer
	code = cli.Main(append([]string{"deepseek", "--cwd", w.ws}, args...), cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e}, w.env)
	return code, o.String(), e.String()
}

// questions is what the program says of a session's questions, on one line.
func (w *world) questions(id string) string {
	w.t.Helper()
	code, out, errs := w.command("questions", id, "--json")
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(out)); err != nil || code != 0 {
		w.t.Fatalf("questions: %d %v %s", code, err, errs)
	}
	return line.String()
}

// log is the session's file.
func (w *world) log(id string) string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.home, "sessions", "*", id+".jsonl"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("the file of %s: %v %v", id, found, err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// message is anything that the server says.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// server is `deepseek acp` on two pipes, spoken to line by line. mu owns said;
// the reading goroutine adds to it and signals more.
type server struct {
	*world
	in     *os.File
	exited chan int
	errs   *bytes.Buffer

	mu   sync.Mutex
	said []message
	more chan struct{}
	read int // of said, by expect
	over bool
}

func (w *world) start(args ...string) *server {
	w.t.Helper()
	s, out := w.startPiped(args...)
	go func() {
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 32<<20)
		for lines.Scan() {
			var m message
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				w.t.Errorf("stdout holds something else than messages: %q", lines.Text())
			}
			s.add(m, false)
		}
		s.add(message{}, true)
	}()
	return s
}

// startPiped is start for somebody else who reads.
func (w *world) startPiped(args ...string) (*server, *os.File) {
	w.t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	s := &server{world: w, in: inW, exited: make(chan int, 1), errs: &bytes.Buffer{}, more: make(chan struct{}, 1)}
	go func() {
		argv := append([]string{"deepseek", "--cwd", w.ws, "acp", "--model", "script:" + w.script}, args...)
		code := cli.Main(argv, cli.Streams{In: inR, Out: outW, Err: s.errs}, w.env)
		_ = outW.Close()
		_ = inR.Close()
		s.exited <- code
	}()
	w.t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
	})
	return s, outR
}

func (s *server) add(m message, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over {
		s.over = true
	} else {
		s.said = append(s.said, m)
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *server) send(lines ...string) {
	s.t.Helper()
	if _, err := s.in.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

func request(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

// expect returns the next message that fits, passing over others.
func (s *server) expect(what string, fits func(message) bool) message {
	s.t.Helper()
	return s.find(what, &s.read, fits)
}

// find returns the first message from *next on that fits, and moves it behind that.
func (s *server) find(what string, next *int, fits func(message) bool) message {
	s.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		s.mu.Lock()
		for *next < len(s.said) {
			m := s.said[*next]
			*next++
			if fits(m) {
				s.mu.Unlock()
				return m
			}
		}
		over := s.over
		s.mu.Unlock()
		if over {
			s.t.Fatalf("the server has ended without %s; stderr: %s", what, s.errs)
		}
		select {
		case <-s.more:
		case <-limit.C:
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, m := range s.said {
				s.t.Logf("%s %s %s %s %+v", m.ID, m.Method, m.Params, m.Result, m.Error)
			}
			s.t.Fatalf("%s has not come", what)
		}
	}
}

// answer is the answer to a request. Answers come in any order.
func (s *server) answer(id int) message {
	s.t.Helper()
	from := 0
	return s.find(fmt.Sprintf("the answer to %d", id), &from, func(m message) bool { return m.Method == "" && string(m.ID) == fmt.Sprint(id) })
}

// update is the next update that holds the text.
func (s *server) update(text string) message {
	s.t.Helper()
	return s.expect("an update with "+text, func(m message) bool { return m.Method == "session/update" && strings.Contains(string(m.Params), text) })
}

// asks is the next question to the client.
func (s *server) asks() message {
	s.t.Helper()
	return s.expect("a question", func(m message) bool { return m.Method == "session/request_permission" })
}

// formed is the next form for the client.
func (s *server) formed() message {
	s.t.Helper()
	return s.expect("a form", func(m message) bool { return m.Method == "elicitation/create" })
}

// reply is the client's result for a request of the server.
func (s *server) reply(to message, result string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, to.ID, result))
}

func (s *server) choose(question message, optionID string) {
	s.t.Helper()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, question.ID, optionID))
}

// answers counts the answers to a request so far.
func (s *server) answers(id int) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.said {
		if m.Method == "" && string(m.ID) == fmt.Sprint(id) {
			n++
		}
	}
	return n
}

// begun initialises, and begins a session.
func (s *server) begun() (id string) {
	s.t.Helper()
	return s.begunWith(`{}`, `[]`)
}

// begunWith is begun as a client of these capabilities that passes on these MCP servers.
func (s *server) begunWith(capabilities, servers string) (id string) {
	s.t.Helper()
	s.send(
		request(1, "initialize", fmt.Sprintf(`{"protocolVersion":1,"clientCapabilities":%s}`, capabilities)),
		request(2, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":%s}`, s.ws, servers)),
	)
	var res struct {
		SessionID string `json:"sessionId"`
	}
	m := s.answer(2)
	if m.Error != nil {
		s.t.Fatalf("session/new: %+v", m.Error)
	}
	if err := json.Unmarshal(m.Result, &res); err != nil || res.SessionID == "" {
		s.t.Fatalf("session/new: %s %v", m.Result, err)
	}
	return res.SessionID
}

// prompted is begun with a prompt behind it, which is request 3.
func (s *server) prompted() (id string) {
	s.t.Helper()
	return s.promptedWith(`{}`, `[]`)
}

func (s *server) promptedWith(capabilities, servers string) (id string) {
	s.t.Helper()
	id = s.begunWith(capabilities, servers)
	s.send(prompt(3, id, "go"))
	return id
}

// hangUp closes the server's input while it works on request 3, and waits for its end.
func (s *server) hangUp() {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.answer(3).stop(s.t, "cancelled")
	s.exit(0)
}

func prompt(id int, session, text string) string {
	return request(id, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session, text))
}

func cancel(session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
}

func (m message) stop(t *testing.T, want string) {
	t.Helper()
	if m.Error != nil || !strings.Contains(string(m.Result), `"stopReason":"`+want+`"`) {
		t.Errorf("the prompt ended with %s %+v, want %s", m.Result, m.Error, want)
	}
}

// end closes the server's input and waits for its end.
func (s *server) end() {
	s.t.Helper()
	if err := s.in.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.exit(0)
}

func (s *server) exit(want int) {
	s.t.Helper()
	select {
	case code := <-s.exited:
		if code != want {
			s.t.Errorf("exit %d, want %d; stderr: %s", code, want, s.errs)
		}
	case <-time.After(patience):
		s.t.Fatal("the server does not end")
	}
}
