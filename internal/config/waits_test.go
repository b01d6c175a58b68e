package config

import (
	"strings"
	"testing"
)

func TestWaits(t *testing.T) {
	type flags = map[string]string
	cap60 := 60
	for _, c := range []struct {
		name, user, project string
		env                 []string
		flags               flags
		logged              *Waits
		mode                string
		timeout, limit      int // limit 0 = none
		err                 string
	}{
		{name: "default", mode: Legacy, timeout: 120},
		{name: "timed", flags: flags{"mode": "timed"}, mode: Timed, timeout: 120},
		{name: "blocking", flags: flags{"mode": "timed", "timeout": "-1"}, mode: Timed, timeout: -1},
		{name: "flag in legacy", flags: flags{"timeout": "5"}, err: "--timeout: has no place in legacy mode"},
		{name: "cap flag in legacy", flags: flags{"max_timeout": "5"}, err: "--max-timeout: has no place in legacy mode"},
		{name: "file and variable in legacy are ignored", user: "timeout: 5\n", env: []string{"DEEPSEEK_MAX_TIMEOUT=3"}, mode: Legacy, timeout: 120},
		{name: "cap below the timeout", flags: flags{"mode": "timed", "timeout": "90", "max_timeout": "60"}, err: "--max-timeout: a longest wait of 60 seconds is below the timeout of 90 (--timeout)"},
		{name: "cap below for ever", flags: flags{"mode": "timed", "timeout": "-1", "max_timeout": "60"}, err: "--max-timeout"},
		{name: "cap of for ever", flags: flags{"mode": "timed", "timeout": "-1", "max_timeout": "-1"}, mode: Timed, timeout: -1, limit: -1},
		{name: "cap equal", flags: flags{"mode": "timed", "timeout": "60", "max_timeout": "60"}, mode: Timed, timeout: 60, limit: 60},
		{name: "cap below the default", flags: flags{"mode": "timed", "max_timeout": "60"}, mode: Timed, timeout: 60, limit: 60},
		{name: "a project's timeout gives way", project: "timeout: 300\n", flags: flags{"mode": "timed", "max_timeout": "60"}, mode: Timed, timeout: 60, limit: 60},
		{name: "a project's cap gives way", project: "max_timeout: 60\n", flags: flags{"mode": "timed", "timeout": "90"}, mode: Timed, timeout: 90, limit: 90},
		{name: "resume takes the log", user: "mode: legacy\n", logged: &Waits{Timed, 30, &cap60}, mode: Timed, timeout: 30, limit: 60},
		{name: "resume with a flag", logged: &Waits{Timed, 30, nil}, flags: flags{"timeout": "45"}, mode: Timed, timeout: 45},
		{name: "resume with a flag above the log's cap", logged: &Waits{Timed, 30, &cap60}, flags: flags{"timeout": "90"}, err: "the session's log: "},
		{name: "resume with a cap below the log's timeout", logged: &Waits{Timed, 30, nil}, flags: flags{"max_timeout": "20"}, mode: Timed, timeout: 20, limit: 20},
		{name: "a timed session made legacy", logged: &Waits{Timed, 30, nil}, flags: flags{"mode": "legacy"}, mode: Legacy, timeout: 120},
		{name: "a legacy session made timed takes the file's wait", user: "timeout: 45\n", logged: &Waits{Legacy, 120, nil}, flags: flags{"mode": "timed"}, mode: Timed, timeout: 45},
		{name: "a legacy session stays so", user: "mode: timed\n", logged: &Waits{Legacy, 120, nil}, mode: Legacy, timeout: 120},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := newPlace(t, c.user, c.project).load(c.flags, c.env...)
			if err != nil {
				t.Fatal(err)
			}
			w, err := cfg.Waits(c.logged)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %+v, %v; want %s", w, err, c.err)
				}
				return
			}
			limit := 0
			if w.MaxTimeout != nil {
				limit = *w.MaxTimeout
			}
			if err != nil || w.Mode != c.mode || w.Timeout != c.timeout || limit != c.limit {
				t.Errorf("got %s %d %d, %v", w.Mode, w.Timeout, limit, err)
			}
		})
	}
}
