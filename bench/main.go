// Command bench measures what the product costs and prints it beside the least
// that the machine lets such work cost, measured in the same run: an empty
// program, curl on the same stream, the same commands in a shell, wc and cp of
// the same file, ripgrep in the same folder. It runs offline, on the loopback alone.
//
//	go run ./bench [-runs 20] [-only stream,log] [-dir DIR] [-binary FILE]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == watchArg {
		os.Exit(watch(os.Args[2:]))
	}
	if len(os.Args) == 4 && os.Args[1] == searchArg {
		if err := searchOnce(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of all measurements. One goroutine uses it.
type bench struct {
	runs   int
	dir    string // everything is below it
	work   string // where the agent works
	binary string // the product
	empty  string // a program that does nothing
	rows   []row
}

// row is one line of the table. Empty words are left out.
type row struct {
	work, measured, least, cpu, memory, floor, bar string
	ok                                             verdict
}

type verdict int

const (
	noBar verdict = iota
	within
	over
)

func judge(ok bool) verdict {
	if ok {
		return within
	}
	return over
}

func (v verdict) String() string { return [...]string{"", "yes", "NO"}[v] }

type work struct {
	name string
	do   func(*bench, context.Context) error
}

var all = []work{
	{"start", (*bench).starting},
	{"text", (*bench).oneText},
	{"steps", (*bench).steps},
	{"stream", (*bench).stream},
	{"resume", (*bench).resumeSmall},
	{"log", (*bench).bigLog},
	{"home", (*bench).manySessions},
	{"late", (*bench).lateAnswer},
	{"flat", (*bench).flat},
	{"search", (*bench).searching},
}

func run(ctx context.Context) (err error) {
	runs := flag.Int("runs", 20, "`times` that each thing is measured; the slow ones a quarter of that")
	only := flag.String("only", "", "comma-separated `names` of what to measure: "+names())
	dir := flag.String("dir", "", "`directory` whose disk is measured (default the system's for temporary files)")
	binary := flag.String("binary", "", "the product's `file`; built from this checkout where it is not given")
	flag.Parse()
	if *runs < 1 || flag.NArg() > 0 {
		return errors.New("usage: go run ./bench [-runs N] [-only NAMES] [-dir DIR] [-binary FILE]")
	}
	b := &bench{runs: *runs, binary: *binary}
	if b.dir, err = os.MkdirTemp(*dir, "deepseek-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.work = filepath.Join(b.dir, "work")
	if err := os.Mkdir(b.work, 0o755); err != nil {
		return err
	}
	if err := b.build(ctx); err != nil {
		return err
	}
	fmt.Printf("%s, load at the start %s\n\n", machine(), load())
	defer b.print()
	wanted := strings.Split(*only, ",")
	for _, w := range all {
		if *only != "" && !contains(wanted, w.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s … ", w.name)
		began := time.Now()
		if err := w.do(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		fmt.Fprintln(os.Stderr, time.Since(began).Round(time.Millisecond*100))
	}
	return nil
}

func names() string {
	var list []string
	for _, w := range all {
		list = append(list, w.name)
	}
	return strings.Join(list, ", ")
}

func contains(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// build makes the programs that are measured.
func (b *bench) build(ctx context.Context) error {
	if b.binary == "" {
		b.binary = filepath.Join(b.dir, "deepseek")
		if err := tell(exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/deepseek")); err != nil {
			return err
		}
	}
	b.empty = filepath.Join(b.dir, "empty")
	source := b.empty + ".go"
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return err
	}
	return tell(exec.CommandContext(ctx, "go", "build", "-o", b.empty, source))
}

func tell(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

func (b *bench) print() {
	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.AppendHeader(table.Row{"work", "median", "least", "CPU", "peak memory", "floor of the same run", "bar", "within"})
	for _, r := range b.rows {
		t.AppendRow(table.Row{r.work, r.measured, r.least, r.cpu, r.memory, r.floor, r.bar, r.ok})
	}
	t.RenderMarkdown()
	fmt.Printf("load at the end %s\n", load())
}

func machine() string {
	model := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.TrimSpace(strings.TrimLeft(name, "\t :"))
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s/%s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// load is the machine's load of the last minute.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(data), " ")
	return one
}
