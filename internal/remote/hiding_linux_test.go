package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The role of a tool that connects, leaves the connection to a child and is gone.
func init() {
	if os.Getenv(roleEnv) != "vanish" {
		return
	}
	conn, err := net.Dial("unix", os.Getenv(socketEnv))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	heir := exec.CommandContext(context.Background(), "/bin/sh", "-c", "echo $$; head -n 1 <&3")
	heir.Env = []string{"PATH=" + os.Getenv("PATH")}
	heir.Stdout, heir.ExtraFiles, heir.SysProcAttr = os.Stdout, []*os.File{file}, &syscall.SysProcAttr{Setsid: true}
	if err := heir.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Whoever connected counts, and who is gone cannot be told: the connection is
// worth nothing to whom it was left to.
func TestAConnectionWhoseMakerIsGoneIsRefused(t *testing.T) {
	if err := becomeSubreaper(); err != nil {
		t.Fatal(err)
	}
	for _, reaped := range []bool{false, true} {
		t.Run(fmt.Sprint("reaped ", reaped), func(t *testing.T) {
			l, err := net.Listen("unix", filepath.Join(shortDir(t), "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close() //nolint:errcheck // a test's
			maker := again("vanish", l.Addr().String())
			out, err := maker.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := maker.Start(); err != nil {
				t.Fatal(err)
			}
			ended := func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", maker.Process.Pid))
				return err != nil || strings.Contains(string(stat), ") Z ")
			}
			for end := time.Now().Add(patience); !ended(); time.Sleep(time.Millisecond) { // nothing tells of it without reaping it
				if time.Now().After(end) {
					t.Fatal("it does not end")
				}
			}
			heard := bufio.NewReader(out)
			text, err := heard.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			heir, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				t.Fatal(err)
			}
			if reaped {
				if _, err := maker.Process.Wait(); err != nil {
					t.Fatal(err)
				}
			}
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			var refused *Error
			if err := admit(conn.(*net.UnixConn)); !errors.As(err, &refused) || refused.Code != CodeCallerIsTool {
				t.Errorf("got %v", err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if rest, err := heard.ReadString(0); rest != "" {
				t.Errorf("the heir was told %q, %v", rest, err)
			}
			if !reaped {
				if _, err := maker.Process.Wait(); err != nil {
					t.Error(err)
				}
			}
			if _, err := syscall.Wait4(heir, nil, 0, nil); err != nil {
				t.Errorf("reap the heir: %v", err)
			}
		})
	}
}

// What a tool of another session starts is known by what is above it, though its
// own environment is empty and it leads a session of its own.
func TestAToolOfAnotherSessionIsKnownByItsAncestors(t *testing.T) {
	for name, script := range map[string]string{
		"an empty environment":        "env -i /bin/sh -c 'echo $$; read x'; true",
		"a session of its own":        "env -i setsid -w /bin/sh -c 'echo $$; read x'; true",
		"a process group of its own":  "set -m; env -i /bin/sh -c 'echo $$; read x'; true",
		"far below":                   "env -i /bin/sh -c '/bin/sh -c \"/bin/sh -c \\\"echo \\$\\$; read x\\\"; true\"; true'; true",
		"a variable of the same name": "DEEPSEEK_TOOL= /bin/sh -c 'echo $$; read x'; true",
	} {
		t.Run(name, func(t *testing.T) {
			top := exec.CommandContext(t.Context(), "/bin/sh", "-c", script+"; read y")
			top.Env = []string{"PATH=" + os.Getenv("PATH"), "DEEPSEEK_TOOL=1"}
			wait, err := top.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := top.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := top.Start(); err != nil {
				t.Fatal(err)
			}
			text, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				t.Fatal(err)
			}
			if found, err := toolOfAny(pid); !found || err != nil {
				t.Errorf("%v, %v", found, err)
			}
			if err := wait.Close(); err != nil {
				t.Error(err)
			}
			if err := top.Wait(); err != nil {
				var exit *exec.ExitError
				if !errors.As(err, &exit) {
					t.Error(err)
				}
			}
		})
	}
}
