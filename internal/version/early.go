package version

import (
	"os"
	"syscall"
)

// The line of `deepseek version` needs nothing of the libraries that the program
// is linked with, and their initialisation is most of the time in which it
// starts. So the line is written before it: packages are initialised in the
// order of their import paths, each behind what it imports, and this one imports
// little. With other arguments, or where not all can be written, the command of
// that name answers, in the ordinary way.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "version" && write(syscall.Stdout, []byte(Current().String()+"\n")) {
		os.Exit(0)
	}
}

// write says whether all of b was written. It does not go through os.Stdout,
// which ends the program where nobody reads a pipe any more: that is for the
// command to tell.
func write(fd int, b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		if err != nil {
			return false
		}
		b = b[n:]
	}
	return true
}
