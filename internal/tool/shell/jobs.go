package shell

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
)

const (
	// CodeUnknownJob is the code of a call that names no job of this run.
	CodeUnknownJob = "UNKNOWN_JOB"
	// CodeTooManyJobs is the code of a start beyond maxJobs.
	CodeTooManyJobs = "TOO_MANY_JOBS"
	maxJobs         = 32 // running at the same time
)

// job is a command in the background.
type job struct {
	id      string
	command string
	p       *process
	cancel  context.CancelFunc // ends it
	read    int64              // how much of its output the model has seen; the family's mu owns it
}

func (j *job) running() bool {
	select {
	case <-j.p.done:
		return false
	default:
		return true
	}
}

// state is the line about the job.
func (j *job) state() string {
	if j.running() {
		return fmt.Sprintf("%s running for %s", j.id, time.Since(j.p.started).Round(time.Second))
	}
	end := j.p.ending()
	switch {
	case j.p.canceled:
		end = "ended by job_kill"
	case end == "":
		end = "exit code 0"
	}
	return fmt.Sprintf("%s %s after %s", j.id, end, j.p.took.Round(time.Millisecond))
}

func (f *Family) startJob(ctx context.Context, launch permission.Launch, command, dir string, timeout time.Duration, out *output) tool.Result {
	f.mu.Lock()
	running := 0
	for _, j := range f.jobs {
		if j.running() {
			running++
		}
	}
	f.mu.Unlock()
	if running >= maxJobs {
		return tool.Errorf(CodeTooManyJobs, "%d jobs are running, the limit is %d: end one with job_kill", running, maxJobs)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives the call; Close ends it
	p, err := f.start(ctx, launch, command, dir, timeout, out)
	if err != nil {
		cancel()
		return notStarted(err)
	}
	f.mu.Lock()
	j := &job{id: fmt.Sprintf("job_%d", len(f.jobs)+1), command: command, p: p, cancel: cancel}
	f.jobs = append(f.jobs, j)
	f.mu.Unlock()
	return tool.Result{Content: fmt.Sprintf("%s started (pid %d)", j.id, p.pid)}
}

func (f *Family) job(id string) (*job, *tool.Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, 0, len(f.jobs))
	for _, j := range f.jobs {
		if j.id == id {
			return j, nil
		}
		names = append(names, j.id)
	}
	have := "there are none"
	if len(names) > 0 {
		have = "there are " + strings.Join(names, ", ")
	}
	r := tool.Errorf(CodeUnknownJob, "job_id %q: no such job, %s", id, have)
	return nil, &r
}

type jobOutputArgs struct {
	JobID string `json:"job_id"`
	Wait  int64  `json:"wait"` // ms
}

func (f *Family) jobOutput(ctx context.Context, _ tool.Call, in jobOutputArgs) tool.Result {
	j, bad := f.job(in.JobID)
	if bad != nil {
		return *bad
	}
	wait := time.NewTimer(time.Duration(min(max(in.Wait, 0), maxTimeout.Milliseconds())) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-j.p.done:
	case <-wait.C:
	case <-ctx.Done():
		return tool.Errorf(tool.CodeAborted, "cancelled while waiting for %s, which goes on", j.id)
	}
	return f.report(j)
}

// report is the job's new output and state.
func (f *Family) report(j *job) tool.Result {
	// The state first: of a job that has ended, all output is there.
	ended, state := !j.running(), j.state()
	f.mu.Lock()
	text, next := j.p.out.since(j.read)
	j.read = next
	f.mu.Unlock()
	r := tool.Result{Limit: maxResult}
	lines := []string{state}
	if ended {
		r.Meta = j.p.meta()
		lines = append(lines, j.p.notes(text)...)
	}
	r.Content = join(text, lines...)
	return r
}

func (f *Family) jobList(context.Context, tool.Call, struct{}) tool.Result {
	f.mu.Lock()
	jobs := append([]*job(nil), f.jobs...)
	f.mu.Unlock()
	if len(jobs) == 0 {
		return tool.Result{Content: "no jobs"}
	}
	lines := make([]string, 0, len(jobs))
	for _, j := range jobs {
		command, rest, _ := strings.Cut(strings.TrimSpace(j.command), "\n")
		if runes := []rune(command); len(runes) > 80 {
			command, rest = string(runes[:80]), "more"
		}
		if rest != "" {
			command += " …"
		}
		lines = append(lines, j.state()+": "+command)
	}
	return tool.Result{Content: strings.Join(lines, "\n")}
}

type jobKillArgs struct {
	JobID string `json:"job_id"`
}

func (f *Family) jobKill(ctx context.Context, _ tool.Call, in jobKillArgs) tool.Result {
	j, bad := f.job(in.JobID)
	if bad != nil {
		return *bad
	}
	j.cancel()
	select {
	case <-j.p.done:
		return f.report(j)
	case <-ctx.Done():
		return tool.Errorf(tool.CodeAborted, "cancelled while %s was being ended", j.id)
	}
}
