package shell

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"deepseek/internal/permission"
)

// proc is a process of the system as it was seen a moment ago. A negative pid
// is a process group, where single processes cannot be seen.
type proc struct {
	pid, ppid, session int
	zombie             bool
	start              uint64 // with pid it names the process for good
}

// victims are the living processes of one command: its session, what carries
// its mark, and what descends from those.
func (p *process) victims() []proc {
	return find(map[int]bool{p.pid: true}, func(c proc) bool { return c.session == p.pid || c.mark() == p.mark })
}

// victims are the living processes of all commands. An orphan that has lost its
// mark belongs to nobody in particular: the last family ends it.
func (f *Family) victims() []proc {
	f.mu.Lock()
	sessions := make(map[int]bool, len(f.sessions))
	for s := range f.sessions {
		sessions[s] = true
	}
	f.mu.Unlock()
	return find(sessions, func(c proc) bool {
		if sessions[c.session] {
			return true
		}
		family, _, _ := strings.Cut(c.mark(), ".")
		return family == f.id || table.stray(c, family)
	})
}

// forgetSessions drops those of which no process is left: the kernel may give
// their numbers to others. What a command has left running descends from an
// orphan, so where there is none, only the running commands' are alive.
func (f *Family) forgetSessions(orphans bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	alive := table.running()
	if orphans {
		alive = aliveSessions(f.sessions)
	}
	for s := range f.sessions {
		if alive[s] {
			table.stays(s)
			continue
		}
		delete(f.sessions, s)
		table.gone(s)
	}
}

// end asks the processes that find names to end, and after the grace, or when
// hurry is closed, ends them by force. It looks again and again, since neither
// the end of a process that is no child of ours nor a new one of theirs is
// announced. The error names what is left.
func (f *Family) end(hurry <-chan struct{}, find func() []proc) error {
	victims := find()
	for _, v := range victims {
		v.signal(syscall.SIGTERM)
		v.signal(syscall.SIGCONT)
	}
	grace := time.NewTimer(f.grace)
	defer grace.Stop()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for asked := true; asked && len(victims) > 0; {
		select {
		case <-pause.C:
			victims = find()
		case <-grace.C:
			asked = false
		case <-hurry:
			asked = false
		}
	}
	empty := len(victims) == 0
	for range 100 {
		// Two looks in a row, since one that forked and exited during a look is seen by the next.
		if victims = find(); len(victims) == 0 {
			if empty {
				return nil
			}
			empty = true
			continue
		}
		empty = false
		for _, v := range victims {
			v.signal(syscall.SIGKILL)
		}
		<-pause.C
	}
	names := make([]string, len(victims))
	for i, v := range victims {
		names[i] = fmt.Sprint(v.pid)
	}
	return fmt.Errorf("processes that could not be ended: %s", strings.Join(names, ", "))
}

// table is the one of this process: being a subreaper and having children are
// matters of the whole process, however many families there are.
var table = &processTable{id: newID(), mains: map[int]bool{}, families: map[string]bool{}, apart: map[string]bool{}}

func newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// processTable knows which children are commands, so that orphans can be told
// from them and reaped by their pid. mu owns its fields, and is held while a
// command is started or orphans are reaped: none is taken for the other.
//
// Between the first temporary folder and the end of the last family there is a sweeper.
type processTable struct {
	id string // begins the ids of families, and so the marks of all commands of this process

	mu        sync.Mutex
	prepared  bool
	prepError error
	mains     map[int]bool // pids of commands, from their start until they are reaped
	families  map[string]bool
	joined    int             // families so far
	apart     map[string]bool // variables of Apart
	sweeper   *sweeper
}

// join makes a family known, and returns its id.
func (t *processTable) join() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.joined++
	family := fmt.Sprintf("%s-%d", t.id, t.joined)
	t.families[family] = true
	return family
}

// leave is called when the family has ended everything of its own.
func (t *processTable) leave(family string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.families, family)
	if len(t.families) > 0 {
		return nil
	}
	s := t.sweeper
	if s == nil {
		return nil
	}
	t.sweeper = nil
	return s.end()
}

// TakeInOrphans makes this process the one that orphans of its descendants come
// to, if it is not yet. A command sees to it by itself; whoever starts another
// program for a session calls it before, so that what the program leaves behind
// can be told from a stranger.
func TakeInOrphans() error {
	table.mu.Lock()
	defer table.mu.Unlock()
	return table.prepare()
}

// prepare is called with mu held.
func (t *processTable) prepare() error {
	if !t.prepared {
		t.prepared, t.prepError = true, becomeSubreaper()
	}
	if t.prepError != nil {
		return fmt.Errorf("this process cannot take in orphans, so commands could outlive it: %w", t.prepError)
	}
	return nil
}

// watch sees to it that there is a sweeper, from before the first temporary
// folder, which lies in base, and the first command on: this process may be
// killed at any time.
func (t *processTable) watch(base string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sweeper == nil {
		t.sweeper = startSweeper(t.id+"-", base)
	}
}

func (t *processTable) start(in *permission.Sandbox, cmd *exec.Cmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.prepare(); err != nil {
		return err
	}
	if err := in.Start(cmd); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	t.mains[pid] = true
	// Most commands end before the sweeper would have to know of their group.
	time.AfterFunc(tellAfter, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mains[pid] {
			t.sweeper.knows(pid)
		}
	})
	return nil
}

const tellAfter = 50 * time.Millisecond

// stays says that a command has ended and left processes in its session.
func (t *processTable) stays(session int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweeper.knows(session)
}

// gone says that no process of a command's session is left.
func (t *processTable) gone(session int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweeper.forgets(session)
}

func (t *processTable) forget(pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mains, pid)
}

// running are the pids of the commands that run, which are their sessions too.
func (t *processTable) running() map[int]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.mains)
}

// stray tells whether c is an orphan of which no other living family carries
// the mark, which nobody else sees to, and the asking family is the last.
func (t *processTable) stray(c proc, family string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.families) == 1 && !t.families[family] && t.orphan(c) && !c.carries(t.apart)
}

// orphan tells whether a child of this process is one that it took in. Its own
// children share its session, but for commands and the sweeper.
func (t *processTable) orphan(c proc) bool {
	return c.ppid == os.Getpid() && c.session != ownSession() && !t.mains[c.pid] && !t.sweeper.is(c.pid)
}

// reap takes the ended orphans off the system's list, and tells whether there
// are, or may be, others that still run. Never by waiting for any child: that
// would steal those of os/exec.
func (t *processTable) reap() (left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	procs, err := children()
	if err != nil {
		return true // they stay on the list, which harms nobody
	}
	for _, c := range procs {
		switch {
		case !t.orphan(c):
		case !c.zombie:
			left = true
		default:
			for {
				if _, err := syscall.Wait4(c.pid, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.EINTR) {
					break
				}
			}
		}
	}
	return left
}
