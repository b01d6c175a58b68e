package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sample is one measured process.
type sample struct {
	Start, End int64 // ns since the epoch, of the process
	CPU        int64 // user and system, ns
	Peak       int64 // resident memory, bytes
	Exit       int
}

func (s sample) wall() time.Duration { return time.Duration(s.End - s.Start) }
func (s sample) cpu() time.Duration  { return time.Duration(s.CPU) }

// watchArg makes this program run another and tell what it cost. A process is
// charged with the memory of the one that started it, so a small one starts it.
const watchArg = "-watch"

// watch runs a command and writes its sample to descriptor 3.
func watch(argv []string) int {
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	s := sample{Start: time.Now().UnixNano()}
	err := cmd.Run()
	s.End = time.Now().UnixNano()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s.Exit, s.CPU = cmd.ProcessState.ExitCode(), int64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.Peak = u.Maxrss << 10
	}
	if err := json.NewEncoder(os.NewFile(3, "sample")).Encode(s); err != nil {
		return 1
	}
	return 0
}

// measure runs a command once. Its output goes through a pipe and is thrown
// away, save what it says on stderr where it fails.
func (b *bench) measure(ctx context.Context, env []string, argv ...string) (sample, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, err
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = told.Close() }() // only read
	cmd := exec.CommandContext(ctx, self, append([]string{watchArg}, argv...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = b.work, append(environment(), env...), []*os.File{tell}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return sample{}, errors.Join(err, tell.Close())
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err = cmd.Start()
	if err = errors.Join(err, tell.Close()); err != nil {
		return sample{}, err
	}
	_, err = io.Copy(io.Discard, out)
	var s sample
	err = errors.Join(err, json.NewDecoder(told).Decode(&s), cmd.Wait())
	if err != nil || s.Exit != 0 {
		return s, fmt.Errorf("%s: exit %d: %w\n%s", strings.Join(argv, " "), s.Exit, err, stderr.String())
	}
	return s, nil
}

// environment is that of measured processes: nothing of ours reaches them.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LANG=C.UTF-8", "TMPDIR=" + os.TempDir(), "DEEPSEEK_API_KEY=" + strings.Repeat("k", 32)}
}

// many measures a command n times.
func (b *bench) many(ctx context.Context, n int, env []string, argv ...string) (series, error) {
	var out series
	for range n {
		s, err := b.measure(ctx, env, argv...)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

type series []sample

func (s series) walls() spread { return spreadOf(s, sample.wall) }
func (s series) cpus() spread  { return spreadOf(s, sample.cpu) }

// peak is the median of the peaks, in bytes.
func (s series) peak() int64 {
	return int64(spreadOf(s, func(v sample) time.Duration { return time.Duration(v.Peak) }).median)
}

// spread is what a series comes to.
type spread struct{ median, least time.Duration }

func spreadOf[T any](list []T, of func(T) time.Duration) spread {
	var values []time.Duration
	for _, v := range list {
		values = append(values, of(v))
	}
	slices.Sort(values)
	if len(values) == 0 {
		return spread{}
	}
	return spread{median: values[len(values)/2], least: values[0]}
}

func itself(d time.Duration) time.Duration { return d }

func ms(d time.Duration) string {
	switch {
	case d >= 10*time.Second || d <= -10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 100*time.Millisecond || d <= -100*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
}

func mb(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/1e6) }
