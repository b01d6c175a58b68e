package logstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"deepseek/internal/session"
)

// writeBig generates a log of 200,000 events and 100 MB.
func writeBig(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "20261130-171203-b1gb1.jsonl")
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = w.WriteString(headerText)
	types := []string{session.TypeAssistantMessage, session.TypeToolCall, session.TypeToolResult, session.TypeStepEnd, session.TypeStepStart}
	text := strings.Repeat(`some words of a \"tool\" result,\n and more; `, 12)
	var line []byte
	for i := range int64(200_000) {
		data := fmt.Sprintf(`{"turn":1,"step":%d,"message":{"id":"m%d","content":"%s"}}`, i, i, text[:45*(8+i%3)])
		e := session.Event{Seq: i, Type: types[i%5], Time: 1_790_000_000_000 + i, Data: []byte(data)}
		line = e.AppendLine(line[:0])
		_, _ = w.Write(line)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return path
}

func BenchmarkScan100MB(b *testing.B) {
	path := writeBig(b)
	info, _ := os.Stat(path)
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		if _, err := Read(context.Background(), path, func(Line) error { n++; return nil }); err != nil || n != 200_000 {
			b.Fatal(n, err)
		}
	}
	reportMemory(b)
}

func BenchmarkResume100MB(b *testing.B) {
	path := writeBig(b)
	s := New(b.TempDir())
	info, _ := os.Stat(path)
	b.SetBytes(info.Size())
	for b.Loop() {
		l, err := s.Own(context.Background(), path)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Replay(context.Background(), func(session.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	reportMemory(b)
}

func reportMemory(b *testing.B) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MB-from-system")
}

func benchLog(b *testing.B) *Log {
	l, err := New(b.TempDir()).Create(session.Header{ID: "bench", Cwd: "/w"}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// The bar is 100,000 events a second.
func BenchmarkAppendBatched(b *testing.B) {
	l := benchLog(b)
	batch := make([]session.Event, 100)
	for i := range batch {
		batch[i] = event(i)
		batch[i].Data = []byte(fmt.Sprintf(`{"turn":%d,"text":%q}`, i, strings.Repeat("word ", 60)))
	}
	n := 0
	for b.Loop() {
		if _, err := l.Append(l.Next(), batch); err != nil {
			b.Fatal(err)
		}
		if n += len(batch); n%10_000 == 0 {
			if err := l.Sync(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

// One fsync serves all who wait.
func BenchmarkAcknowledgedAppend(b *testing.B) {
	for _, k := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", k), func(b *testing.B) {
			l := benchLog(b)
			var turn atomic.Int64
			b.SetParallelism((k + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
			lock := make(chan struct{}, 1)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					lock <- struct{}{}
					_, err := l.Append(l.Next(), []session.Event{event(int(turn.Add(1)))})
					<-lock
					if err != nil {
						b.Error(err)
						return
					}
					if err := l.Sync(context.Background()); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
		})
	}
}
