package shell

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"deepseek/internal/tool"
)

func (r *rig) background(command string) {
	r.t.Helper()
	if got := r.call(r.t.Context(), "bash", m{"command": command, "run_in_background": true}); !strings.HasPrefix(got.Content, "job_") {
		r.t.Fatalf("%q", got.Content)
	}
}

func TestJobOutputIsNewEachTime(t *testing.T) {
	r := newRig(t, nil)
	r.background("echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 4")
	var got tool.Result
	for !strings.HasPrefix(got.Content, "one\n") { // it may not have printed yet
		got = r.call(t.Context(), "job_output", m{"job_id": "job_1", "wait": 10})
	}
	if !strings.HasPrefix(got.Content, "one\njob_1 running for ") || got.Meta != nil {
		t.Errorf("%q", got.Content)
	}
	if err := os.WriteFile(r.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got = r.call(t.Context(), "job_output", m{"job_id": "job_1", "wait": patience.Milliseconds()})
	if !strings.HasPrefix(got.Content, "two\njob_1 exit code 4 after ") || *got.Meta.ExitCode != 4 {
		t.Errorf("%q", got.Content)
	}
	if got = r.call(t.Context(), "job_output", m{"job_id": "job_1"}); !strings.HasPrefix(got.Content, "job_1 exit code 4") {
		t.Errorf("%q", got.Content)
	}
}

func TestJobOutputThatOverflowedSaysWhatIsLeftOut(t *testing.T) {
	r := newRig(t, nil)
	r.background("seq 1 100000")
	got := r.call(t.Context(), "job_output", m{"job_id": "job_1", "wait": patience.Milliseconds()})
	if !strings.HasPrefix(got.Content, "[the end of 588895 bytes of output; the whole is in "+r.spill.dir) || !strings.Contains(got.Content, "\n100000\njob_1 exit code 0 after ") {
		t.Errorf("%.200q", got.Content)
	}
}

func TestJobKill(t *testing.T) {
	r := newRig(t, nil)
	r.background("echo a; trap '' TERM; setsid sleep 311 & sleep 311; sleep 311")
	r.background("sleep 312")
	inTime(t, func() {
		got := r.call(t.Context(), "job_kill", m{"job_id": "job_1"})
		if !strings.Contains(got.Content, "job_1 ended by job_kill after ") {
			t.Errorf("%q", got.Content)
		}
	})
	if left := alive(t, "sleep 311"); left != "" {
		t.Errorf("left running: %s", left)
	}
	got := r.call(t.Context(), "job_list", m{})
	lines := strings.Split(got.Content, "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "job_1 ended by job_kill") || !strings.HasPrefix(lines[1], "job_2 running for ") || !strings.HasSuffix(lines[1], ": sleep 312") {
		t.Errorf("%q", got.Content)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left := alive(t, "sleep 312"); left != "" {
		t.Errorf("left running: %s", left)
	}
}

func TestJobOutlivesTheCallThatStartedIt(t *testing.T) {
	r := newRig(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.call(ctx, "bash", m{"command": "sleep 0.2; echo lived", "run_in_background": true})
	cancel()
	got := r.call(t.Context(), "job_output", m{"job_id": "job_1", "wait": patience.Milliseconds()})
	if !strings.HasPrefix(got.Content, "lived\njob_1 exit code 0") {
		t.Errorf("%q", got.Content)
	}
}

func TestJobTimeoutCountsOnlyWhenGiven(t *testing.T) {
	r := newRig(t, nil)
	r.call(t.Context(), "bash", m{"command": "sleep 313", "run_in_background": true, "timeout_ms": 50})
	got := r.call(t.Context(), "job_output", m{"job_id": "job_1", "wait": patience.Milliseconds()})
	if !strings.HasPrefix(got.Content, "job_1 timed out after 50 ms") {
		t.Errorf("%q", got.Content)
	}
}

func TestJobWaitEndsWithTheCall(t *testing.T) {
	r := newRig(t, nil)
	r.background("sleep 314")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inTime(t, func() {
		if got := r.call(ctx, "job_output", m{"job_id": "job_1", "wait": 600000}); got.Code != tool.CodeAborted {
			t.Errorf("%q", got.Content)
		}
	})
}

func TestUnknownJob(t *testing.T) {
	r := newRig(t, nil)
	for _, name := range []string{"job_output", "job_kill"} {
		if got := r.call(t.Context(), name, m{"job_id": "job_9"}); got.Content != `UNKNOWN_JOB: job_id "job_9": no such job, there are none` {
			t.Errorf("%q", got.Content)
		}
	}
	if got := r.call(t.Context(), "job_list", m{}); got.Content != "no jobs" {
		t.Errorf("%q", got.Content)
	}
}

func TestTooManyJobs(t *testing.T) {
	r := newRig(t, nil)
	for range maxJobs {
		r.background("sleep 315")
	}
	got := r.call(t.Context(), "bash", m{"command": "true", "run_in_background": true})
	if got.Content != fmt.Sprintf("TOO_MANY_JOBS: %d jobs are running, the limit is %d: end one with job_kill", maxJobs, maxJobs) {
		t.Errorf("%q", got.Content)
	}
}
