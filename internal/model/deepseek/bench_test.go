package deepseek

import (
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepseek/internal/model"
)

const benchChunks = 105_000

// BenchmarkStream2MB reads 2 MB of text in 105,000 chunks, from memory and from
// a loopback connection that sends each chunk by itself. The server's share of
// the processor is in the second figure; the bound is 6 µs a chunk.
func BenchmarkStream2MB(b *testing.B) {
	one := delta(`{"content":"twenty bytes of text"}`)
	b.Run("parser", func(b *testing.B) {
		body := strings.Repeat(one, benchChunks) + last("stop") + done
		start := cpu(b)
		for b.Loop() {
			if res, _, err := play(strings.NewReader(body)); err != nil || len(res.Text) != 20*benchChunks {
				b.Fatal(err)
			}
		}
		report(b, start)
	})
	b.Run("network", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			for range benchChunks {
				_, _ = io.WriteString(w, one)
				_ = c.Flush()
			}
			_, _ = io.WriteString(w, last("stop")+done)
		})}
		go func() { _ = srv.Serve(l) }()
		defer func() { _ = srv.Close() }()
		a := New(Config{BaseURL: "http://" + l.Addr().String()})
		defer a.Close()
		start := cpu(b)
		for b.Loop() {
			res, err := a.Generate(b.Context(), model.Request{}, func(model.Delta) {})
			if err != nil || len(res.Text) != 20*benchChunks {
				b.Fatal(err)
			}
		}
		report(b, start)
	})
}

func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func report(b *testing.B, start time.Duration) {
	b.Helper()
	b.ReportMetric(float64((cpu(b)-start).Nanoseconds())/float64(b.N)/benchChunks, "cpu-ns/chunk")
}
