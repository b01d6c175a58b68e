package permission

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minABI is the first that also covers truncation.
const minABI = 3

// Reading is not among the handled rights and so stays as it is. Devices cannot
// be made anywhere: as root, one would open the disk.
const (
	fileRights = ll.AccessFSWriteFile | ll.AccessFSTruncate
	dirRights  = fileRights | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	handled = dirRights | ll.AccessFSMakeChar | ll.AccessFSMakeBlock
)

// devices are writable in every sandbox.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// support is what was found out about the kernel. mu owns it, and is held while
// it is found out.
type support struct {
	mu    sync.Mutex
	known bool
	ok    bool
	why   string
}

var kernel support

// kernelSupport is looked up once: nothing about it changes while we run. Only
// where the system was short of something it is looked up again the next time;
// then it is an error, not the lack of a sandbox.
func kernelSupport() (bool, string, error) { return kernel.get(lookUp) }

func (s *support) get(lookUp func() (bool, string, error)) (bool, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known {
		return s.ok, s.why, nil
	}
	ok, why, err := lookUp()
	if err != nil && isShortage(err) {
		return false, "", fmt.Errorf("whether commands can be sandboxed could not be found out now, this system is short of something: %w; try again", err)
	}
	if err != nil {
		ok, why = false, why+": "+err.Error()
	}
	s.known, s.ok, s.why = true, ok, why
	return ok, why, nil
}

// isShortage tells whether the error may be gone a moment later.
func isShortage(err error) bool {
	for _, short := range []error{unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.ENOMEM} {
		if errors.Is(err, short) {
			return true
		}
	}
	return false
}

func lookUp() (bool, string, error) {
	version, err := ll.LandlockGetABIVersion()
	switch {
	case err != nil:
		return false, "the kernel's Landlock is missing or turned off", err
	case version < minABI:
		return false, fmt.Sprintf("the kernel's Landlock is version %d, %d is needed (Linux 6.2)", version, minABI), nil
	}
	if err := probe(); err != nil {
		return false, "a new command cannot be held before its first instruction, which takes ptrace", err
	}
	return true, "", nil
}

// probe begins this very program the way that commands are begun, and ends it
// before its first instruction. It stays in this session: others are those of
// commands, whose orphans are looked for.
func probe() error {
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"probe"}, Env: []string{}, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // whoever begins it is its tracer
		defer runtime.UnlockOSThread()
		err := startHeld(cmd)
		if err == nil {
			err = cmd.Process.Kill()
			_ = cmd.Wait() // says that it was killed
		}
		done <- err
	}()
	return <-done
}

// start starts the command on a thread that is restricted first: what a thread
// is held to goes on to the processes that it begins. Three things make that safe.
//
// No other goroutine ever runs on the thread: it is locked to this one and ends
// with it. Nor does it make threads: the runtime has an unlocked one do that.
//
// The command cannot reach this program through the thread. Both are in the
// same Landlock domain, so the kernel would let the command trace it, and through
// it read and write the memory and the files that it shares with all other
// threads. Therefore the command is held before its first instruction, by the
// thread itself as its tracer, and nobody lets it go: the kernel does when the thread
// has ended, which is after it has given up memory and files.
func (s *Sandbox) start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		if unix.Gettid() == os.Getpid() {
			// The process's first thread does not end: another is taken.
			err := s.start(cmd)
			runtime.UnlockOSThread()
			started <- err
			return
		}
		err := s.restrict()
		if err == nil {
			err = startHeld(cmd)
		} else {
			err = fmt.Errorf("the command was not run, the sandbox failed: %w", err)
		}
		started <- err
	}()
	return <-started
}

// restrict holds the calling thread to the sandbox, for ever.
func (s *Sandbox) restrict() (err error) {
	rules, err := s.rules()
	if err != nil {
		return err
	}
	config := landlock.Config{HandledAccessFS: handled}
	fd, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return err
	}
	if fd < 0 {
		return errors.New("the kernel would restrict nothing")
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	if err := forgoCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl: %w", err)
	}
	if err := ll.LandlockRestrictSelf(fd, flags); err != nil {
		return fmt.Errorf("landlock_restrict_self: %w", err)
	}
	// The kernel asks at opening only: what this process was handed open by its
	// own parent does not go along.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	return nil
}

func (s *Sandbox) rules() ([]landlock.Rule, error) {
	var rules []landlock.Rule
	for _, path := range append(append([]string(nil), s.Writable...), devices...) {
		fi, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		rights := landlock.AccessFSSet(fileRights)
		if fi.IsDir() {
			rights = dirRights
		}
		rules = append(rules, landlock.PathAccess(rights, path).IgnoreIfMissing())
	}
	return rules, nil
}
