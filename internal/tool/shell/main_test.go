package shell

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deepseek/internal/permission"
	"deepseek/internal/redact"
	"deepseek/internal/tool"
)

const testKey = "sk-test-0123456789"

// patience bounds what has to come. It is less than what is to be ended would take.
const patience = 2 * time.Minute

// open lets every command run as it is.
type open struct{}

func (open) Command(context.Context, permission.CommandRequest) (permission.Launch, error) {
	return permission.Launch{}, nil
}

// spillDir is a spill folder in a test's folder.
type spillDir struct {
	dir string
	mu  sync.Mutex
	n   int
}

type spillFile struct{ *os.File }

func (f spillFile) Path() string { return f.File.Name() }
func (f spillFile) Name() string { return filepath.Base(f.File.Name()) }

func (s *spillDir) Create(hint string) (tool.SpillFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	f, err := os.Create(filepath.Join(s.dir, hint+".txt"))
	return spillFile{f}, err
}

type rig struct {
	t *testing.T
	*Family
	dir   string
	spill *spillDir
}

// newRig makes a family whose commands run as they are, and which is closed
// with nothing left behind at the test's end.
func newRig(t *testing.T, change func(*Env)) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, spill: &spillDir{dir: t.TempDir()}}
	env := Env{
		Cwd: dir, Environ: append(os.Environ(), "DEEPSEEK_API_KEY="+testKey, "OTHER=x"+testKey+"y", "KEPT=1", "TMPDIR="+t.TempDir()),
		Policy: open{}, Spill: r.spill, Redact: redact.New(testKey),
	}
	if change != nil {
		change(&env)
	}
	r.Family = New(env)
	r.grace, r.drain = 150*time.Millisecond, 300*time.Millisecond
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) call(ctx context.Context, name string, args any) tool.Result {
	r.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, tl := range r.Tools() {
		if tl.Spec().Name == name {
			return tl.Run(ctx, tool.Call{ID: "call_1", Arguments: raw})
		}
	}
	r.t.Fatalf("no tool %s", name)
	return tool.Result{}
}

type m = map[string]any

func (r *rig) bash(command string) tool.Result {
	r.t.Helper()
	return r.call(r.t.Context(), "bash", m{"command": command})
}

// alive lists the processes whose arguments hold a text.
func alive(t *testing.T, text string) string {
	t.Helper()
	out, _ := exec.CommandContext(t.Context(), "pgrep", "-f", "--", text).Output() // fails where there is none
	return strings.TrimSpace(string(out))
}

// inTime fails the test if f takes longer than it may on the slowest machine.
func inTime(t *testing.T, f func()) {
	t.Helper()
	begun := time.Now()
	f()
	if took := time.Since(begun); took > patience {
		t.Errorf("took %s, want less than %s", took, patience)
	}
}
