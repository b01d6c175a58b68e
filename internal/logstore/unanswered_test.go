package logstore

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// ended is the number of a process that is gone.
func ended(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestALockWithoutAnAnswerNamesTheLastOwnerIfItStillRuns(t *testing.T) {
	for _, tt := range []struct {
		name string
		pid  int // in the owner file; 0: there is none
		last int
		text string
	}{
		{"no owner file", 0, 0, "the session " + testID + " is in use by another process"},
		{"a process that runs", os.Getppid(), os.Getppid(), "the session " + testID + " is in use by a process that does not answer"},
		{"a process of somebody else", 1, 1, "the session " + testID + " is in use by a process that does not answer"},
		{"a process that is gone", ended(t), 0, "the session " + testID + " is in use by another process"},
		{"no process", -1, 0, "the session " + testID + " is in use by another process"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // it waits for a second
			s := realStore(t)
			l, err := s.Create(testHeader, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.pid != 0 {
				if err := l.Announce(Owner{PID: tt.pid, Socket: "/s", Session: testID}); err != nil {
					t.Fatal(err)
				}
			}
			_, err = s.Own(t.Context(), l.Path())
			var busy *BusyError
			if !errors.As(err, &busy) || *busy != (BusyError{Path: l.Path(), LastPID: tt.last}) || busy.Error() != tt.text {
				t.Errorf("%+v", err)
			}
			if again := Unanswered(l.Path()); *again != *busy {
				t.Errorf("%+v by path alone", again)
			}
			closed(t, l)
		})
	}
}
