package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"deepseek/internal/tool"
	"deepseek/internal/tool/search"
)

// searchArg makes this program run one search in the folder it stands in, as a
// tool call, so that it is measured as a process beside others.
const searchArg = "-search"

func searchOnce(name, arguments string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, t := range search.New(search.Env{Cwd: dir, Guard: allReadable{}}) {
		if t.Spec().Name == name {
			r := t.Run(context.Background(), tool.Call{ID: "c", Arguments: json.RawMessage(arguments)})
			if r.Code != "" {
				return errors.New(r.Content)
			}
			_, err := fmt.Println(r.Content)
			return err
		}
	}
	return fmt.Errorf("no tool %s", name)
}

type allReadable struct{}

func (allReadable) ForRead(string) error { return nil }

// searching measures grep and glob over 50,000 files against ripgrep, or where
// that is not installed against grep and find.
func (b *bench) searching(ctx context.Context) error {
	tree := filepath.Join(b.dir, "tree")
	if err := manyFiles(tree); err != nil {
		return err
	}
	// Searches stand where the measured work is done.
	outer := b.work
	b.work = tree
	defer func() { b.work = outer }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n := max(b.runs/4, 1)
	for _, c := range []struct {
		words, tool, args string
		rg, without       []string
	}{
		{"files by name", "glob", `{"pattern":"**/*.go"}`, []string{"--files", "-g", "*.go"}, []string{"find", ".", "-name", "*.go"}},
		{"a word", "grep", `{"pattern":"needle"}`, []string{"-n", "needle"}, []string{"grep", "-rn", "needle", "."}},
		{"a word in any case", "grep", `{"pattern":"(?i)RARE NEEDLE"}`, []string{"-n", "(?i)RARE NEEDLE"}, []string{"grep", "-rni", "RARE NEEDLE", "."}},
		{"words around a word", "grep", `{"pattern":"\\w+ needle \\w+"}`, []string{"-n", `\w+ needle \w+`}, []string{"grep", "-rnE", `\w+ needle \w+`, "."}},
		{"an expression without a fixed word", "grep", `{"pattern":"[A-Z]\\w+ [n-z]"}`, []string{"-n", `[A-Z]\w+ [n-z]`}, []string{"grep", "-rnE", `[A-Z]\w+ [n-z]`, "."}},
		{"what is in most lines", "grep", `{"pattern":"func"}`, []string{"-n", "func"}, []string{"grep", "-rn", "func", "."}},
	} {
		floor, name := c.without, c.without[0]
		if installed("rg") {
			floor, name = append([]string{"rg", "--no-messages"}, c.rg...), "rg"
		}
		ours, err := b.many(ctx, n, nil, self, searchArg, c.tool, c.args)
		if err != nil {
			return err
		}
		theirs, err := b.many(ctx, n, nil, floor...)
		if err != nil {
			return err
		}
		r := row{
			work: fmt.Sprintf("`%s` over 50,000 files: %s", c.tool, c.words), measured: ms(ours.walls().median), least: ms(ours.walls().least), cpu: ms(ours.cpus().median), memory: mb(ours.peak()),
			floor: fmt.Sprintf("`%s` %s, CPU %s", name, ms(theirs.walls().median), ms(theirs.cpus().median)),
		}
		if name == "rg" {
			r.bar, r.ok = "3 × floor", judge(ours.walls().median <= 3*theirs.walls().median)
		}
		b.add(r)
	}
	return nil
}

// manyFiles makes a work tree of 50,000 files of 4 KB in 1,000 folders.
func manyFiles(dir string) error {
	r := rand.New(rand.NewPCG(1, 1))
	words := strings.Fields("func return if err nil range for type struct interface string int context error package import var const switch case default value handler request response client server config option")
	for d := range 1000 {
		folder := filepath.Join(dir, fmt.Sprintf("m%02d/p%02d", d/50, d%50))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for f := range 50 {
			var text strings.Builder
			for text.Len() < 4000 {
				for range 8 {
					text.WriteString(words[r.IntN(len(words))] + " ")
				}
				text.WriteByte('\n')
			}
			if f == 7 && d%10 == 0 {
				text.WriteString("a Rare needle here\n")
			}
			if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%02d.go", f)), []byte(text.String()), 0o644); err != nil {
				return err
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\nbuild/\n/out\n"), 0o644)
}
