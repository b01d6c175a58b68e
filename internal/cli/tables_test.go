package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// TestTablesLookAsTheyDo keeps what `sessions` and `questions` print on terminals
// of three widths and in a pipe. They have no colours.
func TestTablesLookAsTheyDo(t *testing.T) {
	now := time.UnixMilli(1_790_000_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	rows := []sessionRow{
		{ID: "20261130-171203-7f3kq", Cwd: "/home/ada/shop", UpdatedAt: ago(4 * time.Second), Live: true, Questions: 1, Task: "port the server to the new router, and say what had to be left as it was"},
		{ID: "20261130-161203-aaaaa", Cwd: "/home/ada/文書/とても長い名前のフォルダ/src", UpdatedAt: ago(3 * time.Hour), Questions: 12, Task: "日本語の長い課題で、幅の計算が正しいかどうかを確かめるためのものです"},
		{ID: "20261129-161203-bbbbb", Cwd: "/srv", UpdatedAt: ago(50 * time.Hour), Error: "damaged session file: line 4, byte 812: not one whole JSON value"},
	}
	port := session.Question{ID: "port", Header: "Port", Question: "Which port shall the new server listen on, now that the old one is taken by the router?", Options: []session.Option{{Label: "8080"}, {Label: "9090"}}}
	tools := session.Question{ID: "tools", Question: "どの道具を使いますか、そしてそれはなぜですか、説明してください?", MultiSelect: true, Options: []session.Option{{Label: "go"}, {Label: "make"}}}
	name := session.Question{ID: "name", Header: "Name", Question: "What is it called?"}
	list := []sessionQuestions{
		{
			SessionID: "20261130-171203-7f3kq", Live: true, ref: "20261130-171203-7f3kq", cwd: "/home/ada/shop",
			Active: []remote.ActiveQuestion{
				{CallID: "call_00_q", State: remote.StateOpen, Questions: []session.Question{port}, AskedAt: ago(4 * time.Second)},
				{CallID: "call_01_q", State: remote.StateContinued, Questions: []session.Question{tools, name}, AskedAt: ago(3 * time.Hour)},
				{CallID: "call_02_q", State: remote.StateContinued, Queued: true, Questions: []session.Question{name}, AskedAt: ago(50 * time.Hour)},
			},
			Waits:   []remote.Wait{{CallID: "call_9", Kind: question.KindApproval, Questions: []session.Question{{ID: "a", Question: "Run rm -r build?", Options: []session.Option{{Label: "no"}, {Label: "yes, once"}}}}}},
			Settled: []remote.SettledQuestion{{CallID: "call_03_q", Answers: []session.Answer{{ID: "port", Selected: []string{"9090"}, Custom: "and the old one too"}}}},
		},
	}
	for file, print := range map[string]func(a *App){
		"sessions":  func(a *App) { a.printTable(a.sessionTable(rows, now)) },
		"questions": func(a *App) { a.printQuestions(a.Out, "/home/ada/.deepseek", list, true, now) },
	} {
		t.Run(file, func(t *testing.T) {
			var all strings.Builder
			for _, columns := range []int{40, 80, 200, 0} {
				var out bytes.Buffer
				a := newApp(Streams{Out: &out, Err: &out}, []string{fmt.Sprintf("COLUMNS=%d", columns), "HOME=/home/ada"})
				a.terminals.out = columns > 0
				print(a)
				where := fmt.Sprintf("%d columns", columns)
				if columns == 0 {
					where = "pipe"
				}
				fmt.Fprintf(&all, "== %s\n%s", where, out.String())
			}
			path := filepath.Join("testdata", "screens", file+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := readFile(t, path); all.String() != want {
				t.Errorf("%s has changed (-update writes it anew):\n%s", path, all.String())
			}
		})
	}
}
