package cli

import (
	"bytes"
	"os"
	"strconv"
)

// statEnvStart is the number of fields of /proc/PID/stat between the program's
// name and env_start, the address of the environment that the kernel laid out
// (proc_pid_stat(5), field 50).
const statEnvStart = 47

// wipeEnviron overwrites the value of a variable in that block. The runtime has
// copied what it needs of it. Where the system does not let us, the variable
// stays: a run must not fail for it.
func wipeEnviron(name string) {
	block, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // a name may hold anything
	if len(fields) <= statEnvStart {
		return
	}
	start, err := strconv.ParseInt(string(fields[statEnvStart]), 10, 64)
	if err != nil || start == 0 {
		return
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return
	}
	at := 0
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(name+"=")); ok {
			_, _ = memory.WriteAt(make([]byte, len(value)), start+int64(at+len(name)+1))
		}
		at += len(entry) + 1
	}
	_ = memory.Close() // nothing is buffered
}
