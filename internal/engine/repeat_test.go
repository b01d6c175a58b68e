package engine

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

func TestARepeatOfTheSameFailingCallIsPointedOut(t *testing.T) {
	fail := tool.Errorf("SOME", "no")
	other := tool.Errorf("SOME", "not that either")
	for name, c := range map[string]struct {
		results []tool.Result
		args    []string // of each; {} if there is none
		want    string   // numbers of the results with a remark
	}{
		"at the 3rd, 5th and 8th time":  {repeated(fail, 12), nil, "3 5 8"},
		"white space makes no new call": {repeated(fail, 3), []string{`{"a":1}`, `{ "a": 1 }`, "{\"a\":1}\n"}, "3"},
		"other arguments do":            {repeated(fail, 4), []string{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":1}`}, ""},
		"another error begins anew":     {[]tool.Result{fail, fail, other, fail, fail, fail}, nil, "6"},
		"a success begins anew":         {[]tool.Result{fail, fail, {Content: "ok"}, fail, fail, fail}, nil, "6"},
		"no success is pointed out":     {repeated(tool.Result{Content: "ok"}, 5), nil, ""},
		"a cancel is no failure":        {repeated(tool.Errorf(tool.CodeAborted, "x"), 3), nil, ""},
		"nor is what never started":     {repeated(tool.Errorf(session.CodeAbortedBefore, "x"), 3), nil, ""},
		"broken arguments count too":    {repeated(fail, 3), []string{"{", "{", "{"}, "3"},
	} {
		t.Run(name, func(t *testing.T) {
			var r repeats
			var got []string
			for i, res := range c.results {
				args := "{}"
				if c.args != nil {
					args = c.args[i]
				}
				noted := r.note("edit", args, res)
				if noted.Code != res.Code || !strings.HasPrefix(noted.Content, res.Content) {
					t.Errorf("%d: %+v became %+v", i, res, noted)
				}
				if noted.Content != res.Content {
					got = append(got, fmt.Sprint(i+1))
				}
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("pointed out at %q, want %q", s, c.want)
			}
		})
	}
}

func repeated(r tool.Result, n int) []tool.Result {
	out := make([]tool.Result, n)
	for i := range out {
		out[i] = r
	}
	return out
}

func TestRepeatsOfParallelCallsAreCounted(t *testing.T) {
	var r repeats
	var wg sync.WaitGroup
	var mu sync.Mutex
	noted := 0
	for range 8 {
		wg.Go(func() {
			res := r.note("read", "{}", tool.Errorf("SOME", "no"))
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(res.Content, "[This is the ") {
				noted++
			}
		})
	}
	wg.Wait()
	if noted != 3 {
		t.Errorf("pointed out %d times", noted)
	}
}
