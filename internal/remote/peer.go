package remote

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
)

// process is one link of a line of ancestors. The start time tells a process
// from a later one that got its number.
type process struct {
	pid   int
	start uint64
}

// peer is the process at the other end of a socket, as the kernel named it when
// it connected.
type peer struct {
	uid, pid int
	// alive tells whether that very process still exists. While it does its
	// number is nobody else's.
	alive func() bool
	close func()
}

// admit refuses a peer that may not speak for the session's user: another
// user's process, and one that descends from this process, since then it was
// started by a tool and the agent would answer itself. Whoever cannot be told
// is refused too.
//
// The owner process itself is admitted. Its number cannot be taken by anybody
// else while it runs, and what it does is not a tool's doing.
func admit(conn *net.UnixConn) error {
	p, err := peerOf(conn)
	if err != nil {
		return untold(err)
	}
	defer p.close()
	if p.uid != os.Geteuid() {
		return refuse(CodeOtherUser, "this session belongs to another user")
	}
	self := os.Getpid()
	if p.pid == self {
		return nil
	}
	tool, err := descends(p.pid, self, lineages)
	if err != nil {
		return untold(err)
	}
	if tool {
		return refuse(CodeCallerIsTool, "this process was started by a tool of the session: an agent does not answer itself")
	}
	foreign, err := toolOfAny(p.pid)
	if err != nil {
		return untold(err)
	}
	if foreign {
		return refuse(CodeCallerIsTool, "this process was started by a tool or a hook of a session: an agent does not answer for people")
	}
	if !p.alive() {
		return untold(errors.New("it has ended already"))
	}
	return nil
}

func untold(err error) *Error {
	return refuse(CodeCallerIsTool, "it cannot be told whether this process was started by a tool of the session: %v", err)
}

// descends tells whether pid descends from ancestor. A line of ancestors can
// change while it is read, by a death in it: only two readings that agree count.
func descends(pid, ancestor int, read func(pid int) ([][]process, error)) (bool, error) {
	const attempts = 5
	var before [][]process
	var err error
	for range attempts {
		var now [][]process
		now, err = read(pid)
		if err != nil {
			before = nil
			continue
		}
		for _, line := range now {
			if slices.ContainsFunc(line, func(p process) bool { return p.pid == ancestor }) {
				return true, nil
			}
		}
		if slices.EqualFunc(before, now, slices.Equal) {
			return false, nil
		}
		before = now
	}
	if err == nil {
		err = errors.New("its line of ancestors does not hold still")
	}
	return false, err
}

// climb reads a line of ancestors, the process itself first.
func climb(pid int, parent func(pid int) (ppid int, start uint64, err error)) ([]process, error) {
	const limit = 4096 // far beyond any real line; a circle comes from numbers used again
	var line []process
	for pid > 0 {
		if len(line) == limit {
			return nil, errors.New("its line of ancestors has no end")
		}
		ppid, start, err := parent(pid)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", pid, err)
		}
		line = append(line, process{pid, start})
		pid = ppid
	}
	return line, nil
}
