package remote

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who connected. A pidfd pins the process; kernels
// before 6.5 pin the one that has the number now, and those before 5.3 none.
func peerOf(conn *net.UnixConn) (*peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var (
		cred           *unix.Ucred
		pidfd          int
		credErr, fdErr error
	)
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		pidfd, fdErr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	})
	if err := errors.Join(err, credErr); err != nil {
		return nil, err
	}
	if cred.Pid <= 0 {
		return nil, errors.New("it lives in another process namespace")
	}
	p := &peer{uid: int(cred.Uid), pid: int(cred.Pid), alive: func() bool { return true }, close: func() {}}
	if errors.Is(fdErr, unix.ENOPROTOOPT) {
		pidfd, fdErr = unix.PidfdOpen(p.pid, 0)
		if errors.Is(fdErr, unix.ENOSYS) {
			return p, nil
		}
	}
	if fdErr != nil {
		return nil, fmt.Errorf("it has ended already: %w", fdErr)
	}
	p.alive = func() bool {
		fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err == nil && n == 0 // readable = it has ended
	}
	p.close = func() { _ = unix.Close(pidfd) } // nothing was written to it
	return p, nil
}

// lineages reads the peer's line of ancestors.
func lineages(pid int) ([][]process, error) {
	// /proc may belong to another namespace, where numbers mean other processes.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("/proc does not show the processes of this namespace")
	}
	line, err := climb(pid, parentOf)
	return [][]process{line}, err
}

// parentOf reads /proc/PID/stat: "pid (name) state ppid …", of which the name may hold anything.
func parentOf(pid int) (ppid int, start uint64, err error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	const (
		fieldPPID  = 1 // counted after the name
		fieldStart = 19
	)
	fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
	if len(fields) <= fieldStart {
		return 0, 0, errors.New("/proc shows it in an unknown form")
	}
	ppid, err = strconv.Atoi(string(fields[fieldPPID]))
	if err != nil {
		return 0, 0, err
	}
	start, err = strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	return ppid, start, err
}

// toolOfAny tells whether the process was started by a tool of whatever
// session: one of its line of ancestors began with the mark of tools in its
// environment, or is another run of this program, which takes in its tools' orphans.
func toolOfAny(pid int) (bool, error) {
	line, err := climb(pid, parentOf)
	if err != nil {
		return false, err
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false, err
	}
	for i, p := range line {
		dir := "/proc/" + strconv.Itoa(p.pid)
		if exe, err := os.Stat(dir + "/exe"); err == nil && i > 0 && os.SameFile(exe, self) && owns(dir) {
			return true, nil
		}
		// What may not be read is another user's, and no tool of ours.
		environ, err := os.ReadFile(dir + "/environ")
		if err == nil && marked(environ) {
			return true, nil
		}
	}
	return false, nil
}

// owns tells whether a run of this program is one of those that own sessions.
func owns(dir string) bool {
	cmdline, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return false
	}
	for arg := range bytes.SplitSeq(cmdline, []byte{0}) {
		switch string(arg) {
		case "run", "answer", "rpc", "acp":
			return true
		}
	}
	return false
}

func marked(environ []byte) bool {
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if len(kv) > len(toolMark) && bytes.HasPrefix(kv, []byte(toolMark)) {
			return true
		}
	}
	return false
}

// toolMark begins the variable that every tool's environment has, with a value.
const toolMark = "DEEPSEEK_TOOL="
