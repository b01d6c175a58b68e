package deepseek_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"deepseek/internal/cli"
	deepseek "deepseek/sdk"
)

// serverVariable makes this test program the server, with the race detector in it.
const serverVariable = "DEEPSEEK_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		os.Exit(cli.Main(os.Args, cli.Std(), os.Environ()))
	}
	// Tests wait more than they work, so more of them run at the same time than there
	// are processors. A -parallel on the command line stands against it.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// box is a home and a folder to work in.
type box struct {
	t        *testing.T
	home, ws string
}

func newBox(t *testing.T) box {
	t.Helper()
	// Sockets have short names, so the folder has one too.
	dir, err := os.MkdirTemp("", "sdk")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := box{t, filepath.Join(dir, "home"), filepath.Join(dir, "ws")}
	for _, d := range []string{b.home, b.ws} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b box) env() []string {
	return []string{
		serverVariable + "=1", "HOME=" + b.home, "DEEPSEEK_HOME=", "XDG_RUNTIME_DIR=", "TMPDIR=" + filepath.Dir(b.home), "DEEPSEEK_API_KEY=",
	}
}

func script(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (b box) options(name string) deepseek.Options {
	return deepseek.Options{
		Command: []string{self(b.t), "rpc"}, Env: b.env(), Cwd: b.ws, Model: "script:" + script(b.t, name),
		Mode: "timed", Permission: "full-access",
	}
}

func (b box) start(o deepseek.Options) *deepseek.Client {
	b.t.Helper()
	c, err := deepseek.Start(testContext(b.t), o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.t.Errorf("close: %v", err)
		}
	})
	return c
}

// release ends the command that waits for it.
func (b box) release() {
	if err := os.WriteFile(filepath.Join(b.ws, "go"), nil, 0o600); err != nil {
		b.t.Error(err)
	}
}

// calls tells whether a notification is of the call of a tool.
func calls(n deepseek.Notification, id string) bool {
	if n.Event == nil || n.Event.Type != "tool/call" {
		return false
	}
	var v struct{ CallID string }
	return json.Unmarshal(n.Event.Data, &v) == nil && v.CallID == id
}

// testContext ends what hangs.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
