package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphans of this process's descendants its own children.
func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// widen makes a pipe hold more, for speed only.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
}

func ownSession() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return -1
	}
	return sid
}

// find lists the living descendants of this process that own says belong, and
// those below them. Where /proc is closed, it knows the groups only.
func find(sessions map[int]bool, own func(proc) bool) []proc {
	procs, err := scan()
	if err != nil {
		return groups(sessions)
	}
	below := map[int][]proc{}
	for _, p := range procs {
		below[p.ppid] = append(below[p.ppid], p)
	}
	var out []proc
	var walk func(pid, depth int, mine bool)
	walk = func(pid, depth int, mine bool) {
		if depth > len(procs) {
			return // a list that was read while it changed may hold a circle
		}
		for _, p := range below[pid] {
			belongs := mine || own(p)
			if belongs && !p.zombie {
				out = append(out, p)
			}
			walk(p.pid, depth+1, belongs)
		}
	}
	walk(os.Getpid(), 0, false)
	return out
}

// scan lists the processes of the system.
func scan() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	procs := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		switch p, err := stat(pid); {
		case err == nil:
			procs = append(procs, p)
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH):
			return nil, err
		}
	}
	if len(procs) == 0 {
		return nil, errors.New("/proc shows no processes")
	}
	return procs, nil
}

// children lists the children of this process. The kernel keeps them by thread,
// and may leave one out while another ends.
func children() ([]proc, error) {
	if childless() {
		return nil, nil
	}
	const threads = "/proc/self/task"
	dir, err := os.Open(threads)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	var procs []proc
	seen := false
	for _, name := range names {
		list, err := os.ReadFile(filepath.Join(threads, name, "children"))
		if err != nil {
			continue // the thread has ended
		}
		seen = true
		for _, field := range strings.Fields(string(list)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			switch p, err := stat(pid); {
			case err == nil:
				procs = append(procs, p)
			case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH):
				return nil, err
			}
		}
	}
	if !seen { // a kernel without these lists
		return scan()
	}
	return procs, nil
}

// childless asks the kernel in one call whether there is a child at all, be it one
// that has ended. It takes none away from whoever waits for it.
func childless() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}

// ended tells whether a child has exited, whether it was waited for or not.
func ended(pid int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}

// stat's error is os.ErrNotExist or ESRCH where the process is gone.
func stat(pid int) (proc, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return proc{}, err
	}
	// pid (name) state ppid pgrp session …; a name may hold anything.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return proc{}, fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	p := proc{pid: pid, zombie: fields[0] == "Z" || fields[0] == "X"}
	p.ppid, err = strconv.Atoi(fields[1])
	if err == nil {
		p.session, err = strconv.Atoi(fields[3])
	}
	if err == nil {
		p.start, err = strconv.ParseUint(fields[19], 10, 64)
	}
	return p, err
}

// mark is the value of the mark in the environment that the process was started with.
func (p proc) mark() string {
	for kv := range bytes.SplitSeq(p.environ(), []byte{0}) {
		if value, ok := bytes.CutPrefix(kv, []byte(markName+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// carries tells whether that environment has one of the variables, each NAME=value.
func (p proc) carries(variables map[string]bool) bool {
	if len(variables) == 0 {
		return false
	}
	for kv := range bytes.SplitSeq(p.environ(), []byte{0}) {
		if variables[string(kv)] {
			return true
		}
	}
	return false
}

// environ is empty where the system does not show it.
func (p proc) environ() []byte {
	if p.pid <= 0 || p.zombie {
		return nil
	}
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.pid), "environ"))
	if err != nil {
		return nil
	}
	return b
}

// signal reaches the very process that was seen, or none. One that has ended or
// belongs to somebody else is left to the caller's next look.
func (p proc) signal(s syscall.Signal) {
	if p.pid < 0 {
		_ = unix.Kill(p.pid, s)
		return
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if now, serr := stat(p.pid); serr == nil && now.start == p.start {
		if err != nil { // no handles on processes, or none left
			_ = unix.Kill(p.pid, s)
		} else {
			_ = unix.PidfdSendSignal(fd, s, nil, 0)
		}
	}
	if err == nil {
		_ = unix.Close(fd)
	}
}

// aliveSessions are those that have a process, be it one that has ended and is
// not reaped yet.
func aliveSessions(sessions map[int]bool) map[int]bool {
	alive := map[int]bool{}
	procs, err := scan()
	if err != nil {
		procs = groups(sessions)
	}
	for _, p := range procs {
		alive[p.session] = true
	}
	return alive
}
