package fakellm

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// waitLimit bounds fakellm-wait in a script, which has no deadline of its own.
const waitLimit = time.Minute

// ReportTo is the key under which a script's Setup puts what is told of broken
// rules: Env.Values[ReportTo] = Env.T(). Without it they are only logged.
const ReportTo = "fakellm.ReportTo"

// Commands are the commands of a script, as the package's comment lists them.
// A server ends with the script that started it, and a request that broke a rule
// then fails the script, also where the program under test made nothing of it.
func Commands() map[string]func(*testscript.TestScript, bool, []string) {
	var mu sync.Mutex // scripts run in parallel
	servers := map[*testscript.TestScript]*Server{}
	server := func(ts *testscript.TestScript) *Server {
		mu.Lock()
		defer mu.Unlock()
		s := servers[ts]
		if s == nil {
			ts.Fatalf("no fakellm runs: say `fakellm FILE` first")
		}
		return s
	}
	usage := func(ts *testscript.TestScript, neg bool, args []string, n int, words string) {
		if neg || len(args) != n {
			ts.Fatalf("usage: %s", words)
		}
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"fakellm": func(ts *testscript.TestScript, neg bool, args []string) {
			usage(ts, neg, args, 1, "fakellm FILE")
			script, err := LoadScript(ts.MkAbs(args[0]))
			ts.Check(err)
			s, err := New(script)
			ts.Check(err)
			mu.Lock()
			defer mu.Unlock()
			servers[ts] = s
			ts.Defer(func() {
				s.Close()
				report := ts.Logf
				if t, ok := ts.Value(ReportTo).(interface{ Errorf(string, ...any) }); ok && !script.Lenient {
					report = t.Errorf
				}
				for _, v := range s.Violations() {
					report("the model server was sent a bad request: %s", v)
				}
				mu.Lock()
				defer mu.Unlock()
				if servers[ts] == s {
					delete(servers, ts)
				}
			})
			ts.Setenv("DEEPSEEK_BASE_URL", s.URL)
			if ts.Getenv("DEEPSEEK_API_KEY") == "" {
				ts.Setenv("DEEPSEEK_API_KEY", "sk-test")
			}
		},
		"fakellm-requests": func(ts *testscript.TestScript, neg bool, args []string) {
			usage(ts, neg, args, 1, "fakellm-requests FILE")
			var out bytes.Buffer
			for _, r := range server(ts).Requests() {
				out.Write(r.Body)
				out.WriteByte('\n')
			}
			ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o600))
		},
		"fakellm-wait": func(ts *testscript.TestScript, neg bool, args []string) {
			usage(ts, neg, args, 1, "fakellm-wait N")
			n, err := strconv.Atoi(args[0])
			ts.Check(err)
			ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
			defer cancel()
			ts.Check(server(ts).Wait(ctx, n))
		},
		"fakellm-release": func(ts *testscript.TestScript, neg bool, args []string) {
			usage(ts, neg, args, 0, "fakellm-release")
			server(ts).Release()
		},
	}
}
