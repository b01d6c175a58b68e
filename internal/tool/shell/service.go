package shell

import (
	"fmt"
	"os/exec"
	"syscall"
)

// Service is a program that runs beside the commands until it is ended, such as
// a server of tools. It is safe for concurrent use; the goroutine that waits for
// the program owns err, which others read once exited is closed.
type Service struct {
	family *Family
	cmd    *exec.Cmd
	pid    int
	mark   string
	exited chan struct{}
	err    error
}

// Serve starts a program as commands are started: as the leader of a session of
// its own, without a terminal, with the environment of commands and cmd.Env
// behind that. Its input and output are the caller's, and should be files: a
// program that it leaves behind would hold up anything else. Close of the family
// ends it and everything it started, if End has not.
func (f *Family) Serve(cmd *exec.Cmd) (*Service, error) {
	tmp, err := f.tempDir()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	f.calls++
	mark := fmt.Sprintf("%s.%d", f.id, f.calls)
	env := append(append([]string(nil), f.environ...), "PWD="+cmd.Dir, "TMPDIR="+tmp)
	cmd.Env = append(append(env, cmd.Env...), markName+"="+mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := table.start(nil, cmd); err != nil {
		return nil, err
	}
	s := &Service{family: f, cmd: cmd, pid: cmd.Process.Pid, mark: mark, exited: make(chan struct{})}
	f.sessions[s.pid] = true
	go s.wait() // ends with the program, which Close ends; not waited for where it could not
	return s, nil
}

func (s *Service) wait() {
	s.err = s.cmd.Wait()
	table.forget(s.pid)
	close(s.exited)
}

// Exited is closed when the program has ended. What it started may still run.
func (s *Service) Exited() <-chan struct{} { return s.exited }

// Err says how the program ended, nil where that was well. It may be called
// once Exited is closed.
func (s *Service) Err() error { return s.err }

// End ends the program and everything that it started, first asking, then by
// force. It returns when all are gone; the error names what is not.
func (s *Service) End() error {
	p := process{pid: s.pid, mark: s.mark}
	if err := s.family.end(s.family.hurry, p.victims); err != nil {
		return err
	}
	<-s.exited
	s.family.forgetSessions(table.reap())
	return nil
}
