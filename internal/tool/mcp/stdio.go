package mcp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeTime bounds one write to a program that does not read.
const writeTime = 30 * time.Second

// pipes is the link to a program. once owns the end; left is set by it.
type pipes struct {
	service Service
	in      *os.File // the program's input
	out     *sieve   // of its output
	errs    *os.File // its stderr
	last    *lastLine
	drained chan struct{} // closed when nobody reads errs any more
	exit    time.Duration // Family.exit

	once sync.Once
	left error // processes that could not be ended
}

// program finds the server's program and the folder it is started in. Neither is
// the workspace unless the configuration says so: programs look around where they
// start, and what lies there may be somebody else's.
func (s *server) program() (path, dir string, err error) {
	home := s.family.env.Home
	path, dir = underHome(s.conf.Command, home), home
	if strings.Contains(path, "/") && !filepath.IsAbs(path) {
		return "", "", fmt.Errorf("its command %q is neither a name nor a whole path", s.conf.Command)
	}
	if path, err = exec.LookPath(path); err != nil {
		return "", "", fmt.Errorf("its command %q is not found; give its whole path, or install it", s.conf.Command)
	}
	switch {
	case s.conf.Cwd != "":
		if dir = underHome(s.conf.Cwd, home); !filepath.IsAbs(dir) {
			dir = filepath.Join(s.family.env.Cwd, dir)
		}
	case dir == "":
		dir = "/"
	}
	if fi, err := os.Stat(dir); err != nil {
		return "", "", fmt.Errorf("the folder %s that it is to start in (cwd) cannot be used: %w", dir, errors.Unwrap(err))
	} else if !fi.IsDir() {
		return "", "", fmt.Errorf("the folder %s that it is to start in (cwd) is none", dir)
	}
	return path, dir, nil
}

func underHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	return path
}

// overPipes starts the server's program.
func (s *server) overPipes() (link, sdk.Transport, error) {
	path, dir, err := s.program()
	if err != nil {
		return nil, nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{s.conf.Command}, s.conf.Args...), Dir: dir}
	for name, value := range s.conf.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var ends [6]*os.File // theirs and ours of each pipe
	closeAll := func() error {
		var errs []error
		for _, f := range ends {
			if f != nil {
				errs = append(errs, f.Close())
			}
		}
		return errors.Join(errs...)
	}
	for i := 0; i < len(ends); i += 2 {
		if ends[i], ends[i+1], err = os.Pipe(); err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[3], ends[5]
	service, err := s.family.env.Serve(cmd)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("it could not be started: %w", err), closeAll())
	}
	p := &pipes{service: service, in: ends[1], out: newSieve(ends[2], s.family.max), errs: ends[4], last: &lastLine{}, drained: make(chan struct{}), exit: s.family.exit}
	go func() { // ends with the program and its children, or with sever
		defer close(p.drained)
		s.family.stderr(s.name, p.errs, p.last)
	}()
	if err := errors.Join(ends[0].Close(), ends[3].Close(), ends[5].Close()); err != nil {
		return nil, nil, errors.Join(err, p.sever(0))
	}
	return p, &sdk.IOTransport{Reader: p.out, Writer: bounded{p.in}, MaxLineLength: s.family.max + 1<<10}, nil
}

// bounded is the program's input with an end to every write.
type bounded struct{ *os.File }

func (b bounded) Write(data []byte) (int, error) {
	if err := b.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return b.File.Write(data)
}

// Close leaves a file that sever has closed alone.
func (b bounded) Close() error {
	if err := b.File.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// why: what is wrong with its output, else that it has exited, with the last it
// had to say, else the connection's own error.
func (p *pipes) why(err error) error {
	if bad := p.out.fault(); bad != nil {
		return bad
	}
	select {
	case <-p.service.Exited():
	case <-time.After(p.exit): // it may have been about to
		return err
	}
	select { // its last words
	case <-p.drained:
	case <-time.After(p.exit):
	}
	how := "it exited"
	if e := p.service.Err(); e != nil {
		how = "it ended: " + e.Error()
	}
	if last := p.last.String(); last != "" {
		how += " (" + line(last, 200) + ")"
	}
	return errors.New(how)
}

// sever ends the program's input, gives it the grace to exit, and then ends it
// with all that it has started.
func (p *pipes) sever(grace time.Duration) error {
	p.once.Do(func() {
		closing := bounded{p.in}.Close()
		select {
		case <-p.service.Exited():
		case <-time.After(grace):
		}
		p.left = errors.Join(closing, p.service.End(), p.out.Close(), p.errs.Close())
		<-p.drained
	})
	return p.left
}
