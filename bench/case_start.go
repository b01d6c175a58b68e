package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// starting measures what stands before the first request.
func (b *bench) starting(ctx context.Context) error {
	empty, err := b.many(ctx, b.runs, nil, b.empty)
	if err != nil {
		return err
	}
	version, err := b.many(ctx, b.runs, nil, b.binary, "version")
	if err != nil {
		return err
	}
	floor := empty.walls()
	b.add(row{
		work: "`version`", measured: ms(version.walls().median), least: ms(version.walls().least), cpu: ms(version.cpus().median), memory: mb(version.peak()),
		floor: "empty Go program " + ms(floor.median), bar: "floor + 5 ms", ok: judge(version.walls().median-floor.median <= 5*time.Millisecond),
	})

	// Every other command has all of the program to start, and this one does nothing with it.
	whole, err := b.many(ctx, b.runs, nil, b.binary, "--version")
	if err != nil {
		return err
	}
	b.add(row{
		work: "`--version`, with all of the program started", measured: ms(whole.walls().median), least: ms(whole.walls().least), cpu: ms(whole.cpus().median),
		memory: mb(whole.peak()), floor: "empty Go program " + ms(floor.median),
	})

	s, err := serve(func(int) []string { return text("All is well.") })
	if err != nil {
		return err
	}
	defer s.close()
	var until []time.Duration
	size := 0
	var runs series
	for i := range b.runs {
		one, err := b.task(ctx, s, fmt.Sprintf("start%d", i), "what is here?")
		if err != nil {
			return err
		}
		list := s.take()
		if len(list) != 1 {
			return fmt.Errorf("%d requests instead of one", len(list))
		}
		until, size, runs = append(until, list[0].arrived.Sub(time.Unix(0, one.Start))), list[0].bytes, append(runs, one)
	}
	first := spreadOf(until, itself)
	syncs, err := b.fsync(4 << 10)
	if err != nil {
		return err
	}
	b.add(row{
		work: "start to the first request", measured: ms(first.median), least: ms(first.least),
		cpu: ms(runs.cpus().median) + " of the whole", memory: mb(runs.peak()),
		floor: fmt.Sprintf("empty Go program %s, one fsync %s", ms(floor.median), ms(syncs.median)),
	})
	b.add(row{work: "bytes of the first request", measured: strconv.Itoa(size), bar: "12,288", ok: judge(size <= 12<<10)})
	return nil
}

// task runs the product once, in a home of its own name, against the server.
func (b *bench) task(ctx context.Context, s *server, home, words string, more ...string) (sample, error) {
	args := append([]string{b.binary, "run", "--home", b.home(home), "--base-url", s.url}, more...)
	return b.measure(ctx, nil, append(args, words)...)
}

func (b *bench) home(name string) string { return filepath.Join(b.dir, "homes", name) }

// oneText measures a whole process that gets one answer of text.
func (b *bench) oneText(ctx context.Context) error {
	words := strings.SplitAfter(strings.Repeat("The folder is empty, so there is nothing to say of it. ", 20), " ")
	s, err := serve(func(int) []string { return text(words...) })
	if err != nil {
		return err
	}
	defer s.close()
	var runs series
	var beyond []time.Duration
	for i := range b.runs {
		one, err := b.task(ctx, s, fmt.Sprintf("text%d", i), "what is here?")
		if err != nil {
			return err
		}
		runs = append(runs, one)
		beyond = append(beyond, one.wall()-busy(s.take()))
	}
	curl, err := b.curl(ctx, s, b.runs)
	if err != nil {
		return err
	}
	extra := spreadOf(beyond, itself)
	b.add(row{
		work: "one text answer, beyond the server's time", measured: ms(extra.median), least: ms(extra.least), cpu: ms(runs.cpus().median), memory: mb(runs.peak()),
		floor: "curl, the whole " + curl.words(), bar: "30 ms, 40 MB", ok: judge(extra.median <= 30*time.Millisecond && runs.peak() <= 40e6),
	})
	return nil
}

// floor is a measurement that may be missing.
type floor struct {
	s       series
	missing string
}

func (f floor) words() string {
	if f.missing != "" {
		return f.missing
	}
	return ms(f.s.walls().median)
}

// curl reads an answer of the server with curl, if it is installed.
func (b *bench) curl(ctx context.Context, s *server, n int) (floor, error) {
	if !installed("curl") {
		return floor{missing: "not installed"}, nil
	}
	list, err := b.many(ctx, n, nil, "curl", "-sN", "-d", "{}", s.url+"/chat/completions")
	s.take()
	return floor{s: list}, err
}

// fsync measures an append of so many bytes to a file, with its fsync.
func (b *bench) fsync(size int) (_ spread, err error) {
	f, err := os.Create(filepath.Join(b.dir, "fsync"))
	if err != nil {
		return spread{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var all []time.Duration
	data := make([]byte, size)
	for range 5 * b.runs {
		began := time.Now()
		if _, err := f.Write(data); err != nil {
			return spread{}, err
		}
		if err := f.Sync(); err != nil {
			return spread{}, err
		}
		all = append(all, time.Since(began))
	}
	return spreadOf(all, itself), nil
}
