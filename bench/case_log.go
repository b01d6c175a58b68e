package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const benchModel = "deepseek-v4-flash"

// bigLog measures a log of 100 MB and 200,000 events.
func (b *bench) bigLog(ctx context.Context) error {
	path := filepath.Join(b.dir, "big", "20261130-171203-b1gb1.jsonl")
	s := shape{id: "20261130-171203-b1gb1", cwd: b.work, steps: 39_200, output: 1500, live: 200, questions: 20, system: "You are an agent.", model: benchModel}
	if err := s.write(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	n := max(b.runs/4, 1)
	count, err := b.many(ctx, n, nil, "wc", "-l", path)
	if err != nil {
		return err
	}
	copied, err := b.many(ctx, n, nil, "cp", path, filepath.Join(b.dir, "copy"))
	if err != nil {
		return err
	}
	floor := count.walls().median + copied.walls().median
	questions, err := b.many(ctx, n, nil, b.binary, "questions", path, "--home", b.home("log"))
	if err != nil {
		return err
	}
	b.add(row{
		work: fmt.Sprintf("`questions` of a log of %s", mb(info.Size())), measured: ms(questions.walls().median), least: ms(questions.walls().least),
		cpu: ms(questions.cpus().median), memory: mb(questions.peak()),
		floor: fmt.Sprintf("`wc -l` %s, `cp` %s", ms(count.walls().median), ms(copied.walls().median)), bar: "3 × floor, 64 MiB",
		ok: judge(questions.walls().median <= 3*floor && questions.peak() <= 64<<20),
	})
	show, err := b.many(ctx, max(n/2, 1), nil, b.binary, "show", path, "--home", b.home("log"))
	if err != nil {
		return err
	}
	b.add(row{
		work: "`show` of it", measured: ms(show.walls().median), least: ms(show.walls().least), cpu: ms(show.cpus().median), memory: mb(show.peak()),
		floor: fmt.Sprintf("`wc -l` %s, `cp` %s", ms(count.walls().median), ms(copied.walls().median)),
	})
	return b.resumeBig(ctx, path, n)
}

func (b *bench) resumeBig(ctx context.Context, path string, n int) error {
	server, err := serve(func(int) []string { return text("Gone on.") })
	if err != nil {
		return err
	}
	defer server.close()
	var until []time.Duration
	var runs series
	size := 0
	for range n {
		one, err := b.task(ctx, server, "log", "go on", "--session", path)
		if err != nil {
			return err
		}
		first := server.take()[0]
		runs, until, size = append(runs, one), append(until, first.arrived.Sub(time.Unix(0, one.Start))), first.bytes
	}
	first := spreadOf(until, itself)
	b.add(row{
		work: fmt.Sprintf("resume of it to its request of %d KB", size>>10), measured: ms(first.median), least: ms(first.least),
		cpu: ms(runs.cpus().median), memory: mb(runs.peak()), floor: "as above", bar: "2 s", ok: judge(first.median <= 2*time.Second),
	})
	return nil
}
