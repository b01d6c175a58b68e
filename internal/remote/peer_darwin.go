package remote

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// toolOfAny does nothing here: what the environment of tools makes the commands
// refuse by themselves is all that tells.
func toolOfAny(int) (bool, error) { return false, nil }

// peerOf asks the kernel who connected.
func peerOf(conn *net.UnixConn) (*peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var (
		cred            *unix.Xucred
		pid             int
		credErr, pidErr error
	)
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		pid, pidErr = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	})
	if err := errors.Join(err, credErr, pidErr); err != nil {
		return nil, err
	}
	return &peer{
		uid: int(cred.Uid), pid: pid,
		alive: func() bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) },
		close: func() {},
	}, nil
}

// lineages reads the peer's line of ancestors and that of its process group's
// leader: an orphan has lost the first, not its group.
func lineages(pid int) ([][]process, error) {
	line, err := climb(pid, parentOf)
	if err != nil {
		return nil, err
	}
	group, err := unix.Getpgid(pid)
	if err != nil {
		return nil, err
	}
	leader, err := climb(group, parentOf)
	if err != nil {
		// The leader is gone, and with it what the group could tell.
		leader = nil
	}
	return [][]process{line, leader}, nil
}

func parentOf(pid int) (ppid int, start uint64, err error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, 0, err
	}
	if int(info.Proc.P_pid) != pid {
		return 0, 0, unix.ESRCH
	}
	at := info.Proc.P_starttime
	return int(info.Eproc.Ppid), uint64(at.Sec)*1e6 + uint64(at.Usec), nil
}
