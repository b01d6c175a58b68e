package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// flat measures whether a step late in a session costs more than an early one,
// with the same messages in the history of both.
func (b *bench) flat(ctx context.Context) error {
	const live, calls = 40, 60
	script := func(n int) []string {
		if n < calls {
			return call(fmt.Sprintf("new_%d", n), "todo_write", object{"todos": []object{{"content": "the next part", "status": "pending"}}})
		}
		return text("Done.")
	}
	s, err := serve(script)
	if err != nil {
		return err
	}
	defer s.close()
	n := max(b.runs/4, 3) // one pass alone shows the moods of the machine
	gaps := map[int][]time.Duration{}
	for i := range n { // in turns, so that the machine's moods meet both
		for _, steps := range []int{50, 5000, 10000} {
			id := fmt.Sprintf("20261130-171203-f%d", steps*10+i)
			path := filepath.Join(b.dir, "flat", id+".jsonl")
			if err := (shape{id: id, cwd: b.work, steps: steps, output: 1500, live: live, system: "You are an agent.", model: benchModel}).write(path); err != nil {
				return err
			}
			if _, err := b.task(ctx, s, "flat", "go on", "--session", path); err != nil {
				return err
			}
			list := s.take()
			for k := 1; k < len(list); k++ {
				gaps[steps] = append(gaps[steps], list[k].arrived.Sub(list[k-1].arrived))
			}
		}
	}
	early := spreadOf(gaps[50], itself)
	for _, steps := range []int{5000, 10000} {
		late := spreadOf(gaps[steps], itself)
		words := fmt.Sprintf("%d,000", steps/1000)
		b.add(row{
			work: "a step behind " + words + " others, the live history constant", measured: ms(late.median), least: ms(late.least),
			floor: "behind 50 others " + ms(early.median), bar: "floor + 10 %", ok: judge(late.median <= early.median*11/10),
		})
	}
	return nil
}
