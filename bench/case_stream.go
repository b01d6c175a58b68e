package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// stream measures an answer of 2 MB that comes in 20-byte pieces.
func (b *bench) stream(ctx context.Context) error {
	const piece, pieces = 20, 105_000
	one := event(object{"content": strings.Repeat("20 bytes of an answer", 1)[:piece]}, nil)
	stream := make([]string, 0, pieces+1)
	for range pieces {
		stream = append(stream, one)
	}
	stream = append(stream, event(object{}, "stop")+ending)
	s, err := serve(func(int) []string { return stream })
	if err != nil {
		return err
	}
	defer s.close()
	n := max(b.runs/4, 1)
	curl, err := b.curl(ctx, s, n)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		output string
		bar    bool
	}{{"text", true}, {"stream-json", false}} {
		var runs series
		for i := range n {
			one, err := b.task(ctx, s, fmt.Sprint("stream-", kind.output, i), "write a book", "--output", kind.output)
			if err != nil {
				return err
			}
			s.take()
			runs = append(runs, one)
		}
		each := runs.cpus().median / pieces
		r := row{
			work: "2 MB in 20-byte pieces, --output " + kind.output, measured: ms(runs.walls().median), least: ms(runs.walls().least),
			cpu: fmt.Sprintf("%.1f µs a piece", float64(each)/1e3), memory: mb(runs.peak()), floor: "`curl -N` " + curl.words(),
		}
		if kind.bar {
			fast := curl.missing != "" || runs.walls().median <= curl.s.walls().median*3/2
			r.bar, r.ok = "1.5 × floor, 6 µs a piece, 40 MB", judge(fast && each <= 6*time.Microsecond && runs.peak() <= 40e6)
		}
		b.add(r)
	}
	return nil
}
