package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// What a step with a command waits for on the disk: its request, and the start
// of its tool's body.
const syncsOfStep = 2

const shellCalls = 20

// shellSteps answers with so many commands, one a step, and then with text.
func shellSteps(n int) []string {
	if n < shellCalls {
		return call(fmt.Sprintf("call_%d", n), "bash", object{"command": fmt.Sprintf("echo %d", n)})
	}
	return text("Done.")
}

// steps measures runs that use tools.
func (b *bench) steps(ctx context.Context) error {
	if err := os.WriteFile(filepath.Join(b.work, "notes.txt"), []byte(strings.Repeat("a line of notes\n", 100)), 0o644); err != nil {
		return err
	}
	script := func(n int) []string {
		switch n {
		case 0:
			return call("call_r", "read", object{"path": "notes.txt"})
		case 1:
			return call("call_s", "bash", object{"command": "wc -l notes.txt"})
		}
		return text("It has a hundred lines.")
	}
	few := max(b.runs/2, 1)
	runs, beyond, err := b.runSteps(ctx, "few", few, script)
	if err != nil {
		return err
	}
	shell, err := b.many(ctx, few, nil, "bash", "-c", "cat notes.txt; bash -c 'wc -l notes.txt'")
	if err != nil {
		return err
	}
	extra := spreadOf(beyond, itself)
	b.add(row{
		work: "read, shell and answer, beyond the server's time", measured: ms(extra.median), least: ms(extra.least), cpu: ms(runs.cpus().median), memory: mb(runs.peak()),
		floor: "the same in bash " + ms(shell.walls().median),
	})

	runs, beyond, err = b.runSteps(ctx, "many", few, shellSteps)
	if err != nil {
		return err
	}
	_, withoutCalls, err := b.runSteps(ctx, "none", few, func(int) []string { return text("Done.") })
	if err != nil {
		return err
	}
	alone := spreadOf(withoutCalls, itself)
	var lines strings.Builder
	for i := range shellCalls {
		fmt.Fprintf(&lines, "bash -c 'echo %d'\n", i)
	}
	shell, err = b.many(ctx, few, nil, "bash", "-c", lines.String())
	if err != nil {
		return err
	}
	syncs, err := b.fsync(512)
	if err != nil {
		return err
	}
	least := alone.median + shell.walls().median + shellCalls*syncsOfStep*syncs.median
	extra = spreadOf(beyond, itself)
	perStep := (extra.median - least) / shellCalls
	b.add(row{
		work:     "20 shell calls, beyond the server's time",
		measured: fmt.Sprintf("%s (%s a step beyond the floor)", ms(extra.median), ms(perStep)), least: ms(extra.least), cpu: ms(runs.cpus().median), memory: mb(runs.peak()),
		floor: fmt.Sprintf("no call %s, 20 × `bash -c` %s, %d fsyncs of %s", ms(alone.median), ms(shell.walls().median), shellCalls*syncsOfStep, ms(syncs.median)),
		bar:   "5 ms a step beyond it", ok: judge(perStep <= 5*time.Millisecond),
	})
	return nil
}

// runSteps runs a script so many times and tells the time beyond the server's.
func (b *bench) runSteps(ctx context.Context, home string, n int, script func(int) []string) (runs series, beyond []time.Duration, err error) {
	s, err := serve(script)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	for i := range n {
		one, err := b.task(ctx, s, fmt.Sprint(home, i), "do it")
		if err != nil {
			return nil, nil, err
		}
		runs, beyond = append(runs, one), append(beyond, one.wall()-busy(s.take()))
	}
	return runs, beyond, nil
}

// resumeSmall measures how soon a session of 20 calls asks the model again.
func (b *bench) resumeSmall(ctx context.Context) error {
	s, err := serve(shellSteps)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := b.task(ctx, s, "resume", "do it"); err != nil {
		return err
	}
	s.take()
	s.answer = func(int) []string { return text("Gone on.") }
	var until []time.Duration
	var runs series
	for range b.runs {
		one, err := b.task(ctx, s, "resume", "go on", "--session", "last")
		if err != nil {
			return err
		}
		runs, until = append(runs, one), append(until, s.take()[0].arrived.Sub(time.Unix(0, one.Start)))
	}
	first := spreadOf(until, itself)
	b.add(row{
		work: "resume of a 20-call session to its request", measured: ms(first.median), least: ms(first.least), cpu: ms(runs.cpus().median), memory: mb(runs.peak()),
		floor: "see start to the first request",
	})
	return nil
}
