package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"deepseek/internal/logstore"
)

const sessions = 1000

// manySessions measures what looks at every session of a home.
func (b *bench) manySessions(ctx context.Context) error {
	home := b.home("many-sessions")
	for i := range sessions {
		cwd := filepath.Join(b.work, fmt.Sprint("project", i%40))
		id := fmt.Sprintf("20261130-%02d%02d%02d-b%04d", i/3600, i/60%60, i%60, i)
		s := shape{id: id, cwd: cwd, steps: 4, output: 700, questions: i % 2, system: "You are an agent.", model: benchModel}
		if err := s.write(filepath.Join(logstore.New(home).Dir(cwd), id+".jsonl")); err != nil {
			return err
		}
	}
	cat, err := b.many(ctx, b.runs, nil, "bash", "-c", "cat "+home+"/sessions/*/*.jsonl")
	if err != nil {
		return err
	}
	for _, command := range []string{"sessions", "questions"} {
		runs, err := b.many(ctx, b.runs, nil, b.binary, command, "--home", home)
		if err != nil {
			return err
		}
		b.add(row{
			work: fmt.Sprintf("`%s` with %d sessions", command, sessions), measured: ms(runs.walls().median), least: ms(runs.walls().least),
			cpu: ms(runs.cpus().median), memory: mb(runs.peak()), floor: "`cat` of them all " + ms(cat.walls().median),
			bar: "100 ms", ok: judge(runs.walls().median <= 100*time.Millisecond),
		})
	}
	return nil
}
