package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

var sessionLine = regexp.MustCompile(`(?m)^session (\d{8}-\d{6}-[0-9a-z]{5})\r?$`)

// cmdSession: session VAR [NAME]
func cmdSession(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1 || len(args) == 2, "session VAR [NAME]")
	var id string
	switch {
	case len(args) == 2 && args[1] == "term":
		t := terminalOf(ts)
		poll(ts, func() bool { return sessionLine.MatchString(t.text()) }, func() string { return "no session id on the terminal:\n" + t.text() })
		id = sessionLine.FindStringSubmatch(t.text())[1]
	case len(args) == 2:
		p := running(ts, args[1])
		id = waitMatch(ts, p, &p.err, sessionLine)
	default:
		m := sessionLine.FindStringSubmatch(ts.ReadFile("stderr"))
		if m == nil {
			ts.Fatalf("no line `session ID` on stderr")
		}
		id = m[1]
	}
	home := ts.Getenv("DEEPSEEK_HOME")
	if home == "" {
		home = filepath.Join(ts.Getenv("HOME"), ".deepseek")
	}
	logs, err := filepath.Glob(filepath.Join(home, "sessions", "*", id+".jsonl"))
	ts.Check(err)
	if len(logs) != 1 {
		ts.Fatalf("session %s has %d files: %v", id, len(logs), logs)
	}
	ts.Setenv(args[0], id)
	ts.Setenv(args[0]+"_LOG", logs[0])
}

// cmdWaitfile: waitfile FILE [VAR]
func cmdWaitfile(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) == 1 || len(args) == 2, "waitfile FILE [VAR]")
	var first string
	poll(ts, func() bool {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		line, _, whole := strings.Cut(string(data), "\n")
		first = line
		return err == nil && whole
	}, func() string { return "there is no line in " + args[0] })
	if len(args) == 2 {
		ts.Setenv(args[1], first)
	}
}

// cmdGone: gone [-wait] FILE
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	wait := len(args) == 2 && args[0] == "-wait"
	usage(ts, neg, wait || len(args) == 1, "gone [-wait] FILE")
	var runs int
	still := func() string { return fmt.Sprintf("process %d still runs", runs) }
	none := func() bool {
		pids := strings.Fields(ts.ReadFile(args[len(args)-1]))
		if len(pids) == 0 {
			ts.Fatalf("no pid in %s", args[len(args)-1])
		}
		for _, word := range pids {
			var err error
			runs, err = strconv.Atoi(word)
			ts.Check(err)
			if alive(runs) {
				return false
			}
		}
		return true
	}
	switch {
	case wait:
		poll(ts, none, still)
	case !none():
		ts.Fatalf("%s", still())
	}
}

// alive tells whether a process runs. One that nobody has waited for does not.
func alive(pid int) bool {
	if runtime.GOOS == "linux" {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
	}
	return syscall.Kill(pid, 0) == nil
}
