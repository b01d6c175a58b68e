package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/session"
)

// writeBigLog generates a log of 200,000 events and 100 MB: turns of four steps
// that read and write files, and a question left pending every hundred turns.
func writeBigLog(tb testing.TB, path string) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	_, _ = w.WriteString(`{"type":"session","version":1,"id":"20261130-171203-b1gb1","createdAt":1790000000000,"cwd":"/","delegationDepth":0}` + "\n")
	seq, line := int64(0), []byte(nil)
	put := func(typ, format string, args ...any) {
		e := session.Event{Seq: seq, Type: typ, Time: 1_790_000_000_000 + seq, Data: fmt.Appendf(nil, format, args...)}
		line = e.AppendLine(line[:0])
		_, _ = w.Write(line)
		seq++
	}
	text := strings.Repeat(`some words of a \"tool\" result,\n and more; `, 33)
	put(session.TypeRequestHeader, `{"header":{"config":{"provider":"p","model":"m"},"tools":[{"name":"ask_user_question","description":"d","parameters":{"type":"object","properties":{"timeout":{"type":"number"}}}}]},"reason":"initial"}`)
	for turn := 1; seq < 200_000; turn++ {
		message := fmt.Sprintf(`{"id":"u%d","role":"user","content":[{"type":"text","text":"%s"}],"source":{"kind":"user"}}`, turn, text[:440])
		put(session.TypeInboxSpliced, `{"target":"next-turn","start":0,"inserted":[%s]}`, message)
		put(session.TypeTurnStart, `{"turn":%d}`, turn)
		put(session.TypeInboxSpliced, `{"target":"next-turn","start":0,"removedCount":1,"inserted":[]}`)
		for step := 1; step <= 4; step++ {
			put(session.TypeStepStart, `{"turn":%d,"step":%d}`, turn, step)
			if step == 1 {
				put(session.TypeUserMessage, `%s`, message)
			}
			name, args, result, id := "read", `{\"path\":\"a\"}`, text[:880], fmt.Sprintf("call_%d_%d", turn, step)
			if turn%100 == 0 && step == 2 {
				name = session.AskTool
				args = `{\"questions\":[{\"id\":\"port\",\"question\":\"Which port?\",\"options\":[{\"label\":\"80\"},{\"label\":\"90\"}]}],\"timeout\":5}`
				result = `{\"pending\":true,\"callId\":\"` + id + `\",\"message\":\"go on\"}`
			}
			put(session.TypeAssistantMessage, `{"turn":%d,"step":%d,"message":{"id":"m%d","role":"assistant","content":[{"type":"text","text":"%s"},{"type":"tool-call","id":"%s","name":"%s","arguments":"%s"}],"source":{"kind":"model"}}}`, turn, step, seq, text, id, name, args)
			put(session.TypeToolCall, `{"turn":%d,"step":%d,"callId":"%s","name":"%s","arguments":"%s"}`, turn, step, id, name, args)
			put(session.TypeToolResult, `{"turn":%d,"step":%d,"message":{"id":"r%d","role":"tool","toolCallId":"%s","content":"%s","isError":false}}`, turn, step, seq, id, result)
			put(session.TypeStepEnd, `{"turn":%d,"step":%d}`, turn, step)
		}
		put(session.TypeTurnEnd, `{"turn":%d,"reason":{"kind":"completed"}}`, turn)
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}

func BenchmarkQuestions100MB(b *testing.B) {
	path := filepath.Join(b.TempDir(), "20261130-171203-b1gb1.jsonl")
	writeBigLog(b, path)
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		list, _, err := readQuestions(context.Background(), redact.Key{}, path, false)
		if err != nil || len(list.Active) < 50 {
			b.Fatal(len(list.Active), err)
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-sys")
}

func BenchmarkListThousandSessions(b *testing.B) {
	home := b.TempDir()
	store := logstore.New(home)
	for i := range 1000 {
		h := session.Header{ID: store.NewID(time.Unix(1_790_000_000+int64(i), 0)), CreatedAt: 1_790_000_000_000, Cwd: fmt.Sprintf("/work/%d", i%7)}
		log, err := store.Create(h, talk(b, "do this and that", 50))
		if err != nil {
			b.Fatal(err)
		}
		if err := log.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		rows, err := sessionRows(context.Background(), store, redact.Key{}, false)
		if err != nil || len(rows) != 1000 || rows[0].Task != "do this and that" || rows[0].Error != "" {
			b.Fatal(len(rows), err)
		}
	}
}
