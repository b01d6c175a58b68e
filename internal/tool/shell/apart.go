package shell

import "syscall"

// Apart are processes that others start beside the commands, and see to the end
// of: those with a certain variable in the environment that they were started
// with. What they leave behind comes to this process as the orphans of commands
// do, and is not ended with these. Methods may be called from any goroutine.
type Apart struct{ variable string }

// SetApart is called before the first of them is started. The variable is
// NAME=value, with a value that no command can guess.
func SetApart(variable string) Apart {
	table.mu.Lock()
	defer table.mu.Unlock()
	table.apart[variable] = true
	return Apart{variable}
}

// Alive tells whether one runs. Where the system shows no environments, none is seen.
func (a Apart) Alive() bool { return len(a.find()) > 0 }

// Kill ends by force those that it finds, and does not wait.
func (a Apart) Kill() {
	for _, v := range a.find() {
		v.signal(syscall.SIGKILL)
	}
}

// Gone says that there are none any more, and will be none.
func (a Apart) Gone() {
	table.mu.Lock()
	defer table.mu.Unlock()
	delete(table.apart, a.variable)
}

func (a Apart) find() []proc {
	own := map[string]bool{a.variable: true}
	return find(nil, func(c proc) bool { return c.carries(own) })
}
