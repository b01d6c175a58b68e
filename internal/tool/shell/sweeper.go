package shell

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
)

// sweeper is a process that outlives this one where that is killed, and then ends
// what the commands left running and removes their temporary folders. While
// this process lives it only waits.
type sweeper struct {
	cmd *exec.Cmd
	in  io.Closer
}

// sweepScript waits until its standard input ends, as it does with the program. Then
// it asks the processes that carry a mark beginning with $1 to end, ends after
// two seconds those that have not, and removes the folders below $2 and /tmp that
// have $1 in their names. It knows processes by their environment, which on
// Linux the system shows.
const sweepScript = `trap '' HUP INT TERM QUIT
marked() { grep -lsF -- "` + markName + `=$1" /proc/[0-9]*/environ | sed 's,/proc/,,; s,/environ,,'; }
read -r _
signal=TERM
for round in 1 2 3 4 5 6 7; do
	pids=$(marked "$1")
	[ -n "$pids" ] || break
	for pid in $pids; do
		kill -s $signal "$pid"
		kill -s CONT "$pid"
	done 2>/dev/null
	[ $round -lt 2 ] || signal=KILL
	sleep 1
done
set -- "$2/$3$1"* "/tmp/$3$1"*
rm -rf -- "$@" 2>/dev/null && exit
find "$@" -type d -exec chmod u+rwx {} \; 2>/dev/null # it follows no links
rm -rf -- "$@"`

// startSweeper starts one for the marks and folders that begin with id; the
// folders lie below base. Where none can be started, as where the system is out
// of processes, nil: this process alone ends its commands, as long as it lives.
func startSweeper(id, base string) *sweeper {
	cmd := exec.Command("/bin/sh", "-c", sweepScript, "sh", id, base, tempPrefix)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	// A group of its own, which a signal to that of the run does not reach, and
	// the session of the run: orphans are looked for in others.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil
	}
	if cmd.Start() != nil {
		_ = in.Close() // an end of a pipe that nobody reads
		return nil
	}
	return &sweeper{cmd: cmd, in: in}
}

// end takes it away: there is nothing left to end.
func (s *sweeper) end() error {
	if s == nil {
		return nil
	}
	_ = s.cmd.Process.Kill() // before its input ends, which would begin its work; one that is gone is none
	err := s.in.Close()
	var killed *exec.ExitError
	if werr := s.cmd.Wait(); !errors.As(werr, &killed) {
		err = errors.Join(err, werr)
	}
	return err
}
