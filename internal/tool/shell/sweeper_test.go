package shell

import (
	"context"
	"strings"
	"testing"
)

// sweeping is the sweeper that there is, nil where there is none.
func sweeping() *sweeper {
	table.mu.Lock()
	defer table.mu.Unlock()
	return table.sweeper
}

func TestTheSweeperGoesWithTheLastFamily(t *testing.T) {
	if sweeping() != nil {
		t.Fatal("a sweeper before the first command")
	}
	one, other := newRig(t, nil), newRig(t, nil)
	one.bash("true")
	first := sweeping()
	if first == nil {
		t.Fatal("no sweeper beside a command")
	}
	other.bash("true")
	if sweeping() != first {
		t.Error("the second family has a sweeper of its own")
	}
	for _, r := range []*rig{one, other} {
		if first.cmd.ProcessState != nil {
			t.Error("the sweeper has ended before the last family")
		}
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if sweeping() != nil || first.cmd.ProcessState == nil {
		t.Error("the sweeper outlives the last family")
	}
}

// It is the second line: who takes it away takes no command with it.
func TestASweeperThatIsGoneFailsNothing(t *testing.T) {
	r := newRig(t, nil)
	r.bash("true")
	if err := sweeping().cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if res := r.bash("echo still here"); res.Code != "" || !strings.Contains(res.Content, "still here") {
		t.Errorf("%+v", res)
	}
	if err := r.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
