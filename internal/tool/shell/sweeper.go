package shell

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// sweeper is a process that outlives this one where that is killed, and then ends
// what the commands left running and removes their temporary folders. While
// this process lives it only listens. Its methods are the process table's, with
// the table's lock held.
type sweeper struct {
	cmd    *exec.Cmd
	in     *os.File
	groups map[int]bool // that it knows of
}

// sweepScript reads which process groups there are, +N and -N, until its standard
// input ends, as it does with the program. Then it asks the groups to end, and the
// processes that carry a mark beginning with $1, ends after two seconds those that
// have not, and removes the folders below $2 and /tmp that have $1 in their names.
// The groups need nothing but the shell: the system may be out of processes, and
// that because of them. What has left them is known by its environment, which on
// Linux the system shows.
const sweepScript = `trap '' HUP INT TERM QUIT
groups=' '
while read -r line; do
	case $line in
	+*) groups="$groups${line#+} " ;;
	-*) groups="${groups%% ${line#-} *} ${groups#* ${line#-} }" ;;
	esac
done
# The last word, also where the shell itself fails for want of processes.
trap 'for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null' EXIT
marked() { grep -lsF -- "` + markName + `=$1" /proc/[0-9]*/environ | sed 's,/proc/,,; s,/environ,,'; }
signal=TERM
for round in 1 2 3 4 5 6 7; do
	left=
	for group in $groups; do
		kill -s $signal -- "-$group" && left=1
		kill -s CONT -- "-$group"
	done 2>/dev/null
	for pid in $(marked "$1"); do
		left=1
		kill -s $signal "$pid"
		kill -s CONT "$pid"
	done 2>/dev/null
	[ -n "$left" ] || { groups=; break; }
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
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	cmd := exec.Command("/bin/sh", "-c", sweepScript, "sh", id, base, tempPrefix)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"PATH=/usr/bin:/bin"}, r
	// A session of its own: signals to the run's group and session do not reach it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = r.Close() // the sweeper has its own
	if err != nil {
		_ = w.Close() // an end of a pipe that nobody reads
		return nil
	}
	return &sweeper{cmd: cmd, in: w, groups: map[int]bool{}}
}

// knows tells it of the process group of a command.
func (s *sweeper) knows(group int) {
	if s != nil && !s.groups[group] {
		s.groups[group] = true
		s.tell('+', group)
	}
}

// forgets tells it that a group is no more: the number may be another's soon.
func (s *sweeper) forgets(group int) {
	if s != nil && s.groups[group] {
		delete(s.groups, group)
		s.tell('-', group)
	}
}

func (s *sweeper) tell(sign byte, group int) {
	// One that is gone is none, and one that stands still has room for thousands of lines.
	_ = s.in.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = fmt.Fprintf(s.in, "%c%d\n", sign, group)
}

func (s *sweeper) is(pid int) bool { return s != nil && s.cmd.Process.Pid == pid }

// end takes it away: there is nothing left to end.
func (s *sweeper) end() error {
	_ = s.cmd.Process.Kill() // before its input ends, which would begin its work; one that is gone is none
	err := s.in.Close()
	var killed *exec.ExitError
	if werr := s.cmd.Wait(); !errors.As(werr, &killed) {
		err = errors.Join(err, werr)
	}
	return err
}
