package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Roles that the test binary plays when it is started again.
const (
	roleEnv   = "REMOTE_TEST_ROLE"
	socketEnv = "REMOTE_TEST_SOCKET"
	// silenceEnv is what is borne of silence by one that serves.
	silenceEnv = "REMOTE_TEST_SILENCE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "dial":
		fmt.Println(dialOnce())
	case "orphan":
		// A double fork: the child leaves at once, the grandchild goes on alone.
		child := again("dial-orphaned", os.Getenv(socketEnv))
		child.Stdout = os.Stdout
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			fmt.Println(err)
		}
	case "dial-orphaned":
		parent, _ := strconv.Atoi(os.Getenv("REMOTE_TEST_PARENT"))
		for os.Getppid() == parent {
			time.Sleep(time.Millisecond) // nothing tells of a parent's death
		}
		fmt.Printf("%d %s\n", os.Getpid(), dialOnce())
	case "serve":
		serveOnce()
	default:
		os.Exit(m.Run())
	}
}

func again(role, socket string) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role, socketEnv+"="+socket, fmt.Sprint("REMOTE_TEST_PARENT=", os.Getpid()))
	cmd.Stderr = os.Stderr
	return cmd
}

func dialOnce() string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := Dial(ctx, os.Getenv(socketEnv))
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			return refused.Code
		}
		return err.Error()
	}
	_ = c.Close()
	return "admitted"
}

// serveOnce serves until its standard input ends.
func serveOnce() {
	l, err := Listen(os.Getenv(socketEnv))
	if err != nil {
		fmt.Println(err)
		return
	}
	if d, err := time.ParseDuration(os.Getenv(silenceEnv)); err == nil {
		l.lim.silence = d
	}
	done := make(chan error, 1)
	go func() { done <- l.Serve(context.Background(), newHost(), Options{}) }()
	fmt.Println(l.Path())
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := errors.Join(l.Close(), <-done); err != nil {
		fmt.Println(err)
	}
}

func TestAChildOfTheOwnerIsRefused(t *testing.T) {
	o := serveHost(t, newHost())
	out, err := again("dial", o.l.Path()).Output()
	if err != nil || strings.TrimSpace(string(out)) != CodeCallerIsTool {
		t.Errorf("got %q %v", out, err)
	}
}

func TestAnOrphanOfTheOwnerIsRefusedWhateverItDidToHide(t *testing.T) {
	if err := becomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	o := serveHost(t, newHost())
	out, err := again("orphan", o.l.Path()).Output() // ends when the grandchild has closed its output
	if err != nil {
		t.Fatal(err)
	}
	pid, verdict, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if verdict != CodeCallerIsTool {
		t.Errorf("got %q", out)
	}
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(n, nil, 0, nil); err != nil {
		t.Errorf("reap the orphan: %v", err)
	}
}

func TestAProcessThatDoesNotDescendFromTheOwnerIsAdmitted(t *testing.T) {
	owner := again("serve", shortDir(t))
	in, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(buf[:n]))
	if !Probe(t.Context(), path) {
		t.Error("Probe: nobody answers")
	}
	c, err := Dial(testContext(t), path)
	if err != nil {
		t.Error(err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		t.Errorf("the owner said %q %v", rest, err)
	}
	if err := owner.Wait(); err != nil {
		t.Error(err)
	}
	if Probe(t.Context(), path) {
		t.Error("Probe: somebody answers who has left")
	}
}

// While an owner stands still it hears nobody. Who spoke meanwhile was not silent.
func TestAnOwnerThatStoodStillTakesNobodyForSilent(t *testing.T) {
	const silence = 3 * time.Second
	owner := again("serve", shortDir(t))
	owner.Env = append(owner.Env, silenceEnv+"="+silence.String())
	in, err := owner.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	path, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var clients []net.Conn
	for range 8 {
		c, err := new(net.Dialer).DialContext(testContext(t), "unix", strings.TrimSpace(path))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // a test's
		clients = append(clients, c)
	}
	ask := func(id int) {
		t.Helper()
		for _, c := range clients {
			if _, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id); err != nil {
				t.Fatal(err)
			}
		}
	}
	answered := func(id int) {
		t.Helper()
		for _, c := range clients {
			if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`+"\n", id)
			if line, err := bufio.NewReader(c).ReadString('\n'); line != want {
				t.Errorf("ping %d: %s%v", id, line, err)
			}
		}
	}
	ask(1)
	answered(1)
	if err := owner.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ask(2)
	time.Sleep(silence + silence/2) // of the owner's clock, which runs on
	if err := owner.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	answered(2)
	for _, c := range clients {
		_ = c.Close()
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("the owner said %q %v", rest, err)
	}
	if err := owner.Wait(); err != nil {
		t.Error(err)
	}
}

// A stopped owner accepts connections, by its kernel, and answers nothing.
func TestProbeOfAFrozenOwnerIsFalse(t *testing.T) {
	l, err := Listen(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if Probe(ctx, l.Path()) {
		t.Error("somebody answers")
	}
	if _, err := Dial(ctx, l.Path()); !errors.Is(err, ErrNotDelivered) {
		t.Errorf("dial: %v", err)
	}
}

func TestOnlyALineThatHoldsStillIsBelieved(t *testing.T) {
	line := func(pids ...int) [][]process {
		var l []process
		for _, p := range pids {
			l = append(l, process{p, uint64(p)})
		}
		return [][]process{l}
	}
	gone := errors.New("gone")
	reused := [][]process{{{10, 10}, {5, 99}, {1, 1}}}
	for _, tt := range []struct {
		name  string
		reads []any // lines or errors, the last one for ever
		tool  bool
		err   bool
	}{
		{"somebody else's process", []any{line(10, 5, 1)}, false, false},
		{"a tool", []any{line(10, 7, 1)}, true, false},
		{"a tool whose parent dies while it is looked at", []any{line(10, 5, 1), line(10, 7, 1)}, true, false},
		{"one whose parent dies", []any{line(10, 5, 1), line(10, 1)}, false, false},
		{"one whose parent's number is used again", []any{line(10, 5, 1), reused}, false, false},
		{"one that vanishes", []any{gone}, false, true},
		{"one that vanishes in between", []any{line(10, 5, 1), gone}, false, true},
		{"one of whom a part was hidden for a moment", []any{gone, line(10, 5, 1)}, false, false},
	} {
		n := 0
		tool, err := descends(10, 7, func(int) ([][]process, error) {
			r := tt.reads[min(n, len(tt.reads)-1)]
			n++
			if err, ok := r.(error); ok {
				return nil, err
			}
			return r.([][]process), nil
		})
		if tool != tt.tool || (err != nil) != tt.err {
			t.Errorf("%s: %v %v", tt.name, tool, err)
		}
	}
	n := uint64(0)
	if _, err := descends(10, 7, func(int) ([][]process, error) { n++; return [][]process{{{10, n}}}, nil }); err == nil {
		t.Error("a line that never holds still was believed")
	}
}

func TestAClimbEnds(t *testing.T) {
	parents := map[int]int{10: 5, 5: 1, 1: 0, 20: 21, 21: 20}
	parent := func(pid int) (int, uint64, error) {
		p, ok := parents[pid]
		if !ok {
			return 0, 0, os.ErrNotExist
		}
		return p, 1, nil
	}
	if l, err := climb(10, parent); err != nil || !slices.Equal(l, []process{{10, 1}, {5, 1}, {1, 1}}) {
		t.Errorf("%v %v", l, err)
	}
	if _, err := climb(20, parent); err == nil {
		t.Error("a circle has an end")
	}
	if _, err := climb(11, parent); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a process that is not there: %v", err)
	}
}
