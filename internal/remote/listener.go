package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// maxClients is how many connections an owner serves at once.
const maxClients = 128

// Listener is the control socket of a session's owner. Its methods may be
// called from any goroutine; mu guards the connections.
type Listener struct {
	dir  string
	path string
	sock *net.UnixListener
	lim  limits

	mu      sync.Mutex
	conns   map[*conn]struct{}
	left    bool           // no client is served any more
	closed  bool           // and the socket is gone
	clients sync.WaitGroup // those of conns; none is added once left
	serving sync.WaitGroup // Serve
}

// Options say how a session is served.
type Options struct {
	Version string       // of this program
	Log     *slog.Logger // why connections ended; nil = nowhere
}

// orQuiet logs nowhere where nothing else was asked for.
func (o Options) orQuiet() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Listen makes a socket in a folder that Dir has returned. Clients that connect
// wait until Serve is called.
func Listen(dir string) (*Listener, error) {
	sweep(dir, time.Now())
	var err error
	for range 8 {
		path := newSocketPath(dir)
		if len(path) > maxSocketPath {
			return nil, fmt.Errorf("%s: the path of a socket in it would have %d bytes, %d are possible", dir, len(path), maxSocketPath)
		}
		var sock *net.UnixListener
		sock, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			continue
		}
		if err := os.Chmod(path, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("control socket: %w", err), sock.Close())
		}
		return &Listener{dir: dir, path: path, sock: sock, lim: socketLimits, conns: map[*conn]struct{}{}}, nil
	}
	return nil, fmt.Errorf("control socket: %w", err)
}

// Path is where clients connect.
func (l *Listener) Path() string { return l.path }

// Serve serves a session until Close, or until ctx ends, which also cuts short
// requests in hand. It returns when no client is being served any more, with
// the error that kept it from accepting, if there was one.
func (l *Listener) Serve(ctx context.Context, host Host, o Options) error {
	o = o.orQuiet()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.serving.Add(1)
	l.mu.Unlock()
	defer l.serving.Done()
	stop := context.AfterFunc(ctx, func() { _ = l.stop() }) // Close returns its error
	defer stop()
	err := l.accept(ctx, host, o)
	l.clients.Wait()
	return err
}

func (l *Listener) accept(ctx context.Context, host Host, o Options) error {
	const longest = time.Second
	wait := time.Duration(0)
	for {
		sock, err := l.sock.AcceptUnix()
		switch {
		case err == nil:
			wait = 0
			l.take(ctx, sock, host, o)
			continue
		case l.gone():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("control socket: %w", err)
		}
		// Out of descriptors, or a client that left while it connected.
		o.Log.Warn("accept a client", "error", err)
		wait = min(longest, max(5*time.Millisecond, 2*wait))
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// take serves a client in a goroutine of its own, or refuses it.
func (l *Listener) take(ctx context.Context, sock *net.UnixConn, host Host, o Options) {
	c := newConn(sock, func() bool { return hungUp(sock) }, l.lim, o.Log)
	l.mu.Lock()
	var no *Error
	switch {
	case l.left:
		no = refuse(CodeOwnerLeaving, "the owner of this session is leaving")
	case len(l.conns) >= maxClients:
		no = refuse(CodeTooManyClients, "%d clients are connected already", maxClients)
	}
	if no != nil {
		l.mu.Unlock()
		c.refuse(no)
		return
	}
	l.conns[c] = struct{}{}
	l.clients.Go(func() {
		defer func() {
			l.mu.Lock()
			delete(l.conns, c)
			l.mu.Unlock()
		}()
		if err := admit(sock); err != nil {
			o.Log.Warn("refuse a client", "error", err)
			c.refuse(err)
			return
		}
		c.serve(ctx, host, ServerInfo{Name: "deepseek", Version: o.Version}, l.leaving)
	})
	l.mu.Unlock()
}

// refuse tells a client why it is not served, and closes.
func (c *conn) refuse(reason error) {
	// A fresh socket takes a line at once; a client that has left needs none.
	c.limitWrites(time.Second)
	_, _ = c.stream.Write(append(errorLine(nil, wire(reason)), '\n'))
	_ = c.stream.Close()
}

func (l *Listener) leaving() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

func (l *Listener) gone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// leave has every connection end once what was read is answered. The caller holds mu.
func (l *Listener) leave() {
	l.left = true
	for c := range l.conns {
		c.leave()
	}
}

// stop serves nobody any more and removes the socket.
func (l *Listener) stop() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.sock.Close() // removes the file
	if strings.HasPrefix(filepath.Base(l.dir), freshPrefix) {
		err = errors.Join(err, os.Remove(l.dir))
	}
	l.leave()
	return err
}

// Leave returns when every connection has ended: what clients had sent by then
// is answered, and subscribers have what is on disk, unless they do not read.
// The socket stays until Close: whoever comes is refused with OWNER_LEAVING, and
// learns by that that the owner is still there.
func (l *Listener) Leave() {
	l.mu.Lock()
	l.leave()
	l.mu.Unlock()
	l.clients.Wait()
}

// Close is Leave, and removes the socket. It returns when Serve has nothing left
// to do. It may be called more than once.
func (l *Listener) Close() error {
	err := l.stop()
	l.clients.Wait()
	l.serving.Wait()
	return err
}
