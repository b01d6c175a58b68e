package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"deepseek/internal/cli"
	"deepseek/internal/fakellm"
	"deepseek/internal/permission"
)

// The scripts of testdata/script run the program as a person or a CI job does:
// as processes, in a workspace and a home of their own, against a model server
// on the loopback interface that is as strict as the strictest.
//
// A script begins in $WORK/ws, the workspace; its files under ws/ lie there, the
// others beside it, where no tool looks. HOME is $WORK/home. Besides the commands
// of testscript there are
//
//	fakellm [FILE]              the model server, FILE in $WORK is llm.yaml if not given; see package fakellm
//	exits CODE PROG…            run a program to its end, which must be the exit code CODE
//	start NAME PROG…            run a program in the background
//	waiterr NAME RE [VAR]       wait until its stderr matches; VAR becomes the first group
//	signal NAME SIG, kill9 NAME
//	finish [-within=D] NAME CODE   wait for its end, D after the last signal at the latest, twice
//	                            that under the race detector; stdout and stderr are then its
//	session VAR [NAME]          the id of the session, from stderr (of NAME); VAR_LOG is its file
//	waitfile FILE [VAR]         wait for a file with a whole line; VAR becomes its first line
//	gone [-wait] FILE           no process whose pid is a line of FILE runs any more; wait until that is so
//	jsonl [-exact] FILE TYPE…   a session log is sound and has these events in this order
//	json FILE[:LINE] PATH=VALUE…   what stands in a JSON object; also PATH~RE, and PATH! for "absent"
//	term …                      a program on a terminal; see terminal_test.go

// patience bounds every wait for something that has to come.
const patience = time.Minute

func TestMain(m *testing.M) {
	// Scripts wait more than they work, so more of them run at the same time than
	// there are processors. A -parallel on the command line stands against it.
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(heeding{m}, map[string]func(){
		"deepseek": func() { os.Exit(cli.Main(os.Args, cli.Std(), cli.TakeEnviron())) },
		// environ FILE writes down the environment that a script's programs get.
		"environ": func() {
			if err := os.WriteFile(os.Args[1], []byte(strings.Join(os.Environ(), "\x00")), 0o600); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		},
	})
}

// heeding runs the tests with the signals heeded that nohup, or the & of a script,
// has this process ignore: the programs that tests start would ignore them too.
type heeding struct{ *testing.M }

func (m heeding) Run() int {
	unread := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(sig) {
			signal.Notify(unread, sig)
		}
	}
	return m.M.Run()
}

func TestScripts(t *testing.T) {
	var scripts []string
	err := filepath.WalkDir(filepath.FromSlash("../../testdata/script"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".txtar" {
			scripts = append(scripts, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: scripts, RequireExplicitExec: true, RequireUniqueNames: true,
		WorkdirRoot: t.TempDir(),
		Deadline:    time.Now().Add(8 * time.Minute), // one that hangs is ended and named
		Setup:       setup, Cmds: commands(),
		Condition: func(cond string) (bool, error) {
			if cond == "sandbox" {
				ok, _ := permission.Supported()
				return ok, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

func setup(e *testscript.Env) error {
	for _, dir := range []string{"ws", "home"} {
		if err := os.MkdirAll(filepath.Join(e.WorkDir, dir), 0o700); err != nil {
			return err
		}
	}
	e.Cd = filepath.Join(e.WorkDir, "ws")
	// The path of a Unix socket is short, and so is that of the folder it lies in.
	temp, err := os.MkdirTemp("/tmp", "ds")
	if err != nil {
		return err
	}
	e.Defer(func() {
		if err := os.RemoveAll(temp); err != nil {
			e.T().Log(err)
		}
	})
	e.Setenv("TMPDIR", temp)
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("NO_COLOR", "1")
	e.Setenv("LANG", "C.UTF-8")
	if os.Getenv("GORACE") == "" {
		e.Setenv("GORACE", "atexit_sleep_ms=1") // the default second, at the end of each program, is most of the time
	}
	if ok, _ := permission.Supported(); !ok {
		// Without a sandbox bash needs a yes, and nobody is there to give it.
		e.Setenv("DEEPSEEK_PERMISSION", "full-access")
	}
	e.Values[fakellm.ReportTo] = e.T()
	e.Values[processesKey] = &processes{running: map[string]*process{}}
	return nil
}

func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := fakellm.Commands()
	serve := all["fakellm"]
	all["fakellm"] = func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) == 0 {
			args = []string{"llm.yaml"}
		}
		if !filepath.IsAbs(args[0]) {
			args[0] = filepath.Join(ts.Getenv("WORK"), args[0])
		}
		serve(ts, neg, args)
	}
	maps.Copy(all, processCommands())
	maps.Copy(all, assertCommands())
	all["term"] = cmdTerm
	return all
}

// poll looks until it sees what has to come, or fails the script with what there is instead.
func poll(ts *testscript.TestScript, look func() bool, missing func() string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(patience)
	for !look() {
		if time.Now().After(end) {
			ts.Fatalf("%s", missing())
		}
		<-tick.C
	}
}
