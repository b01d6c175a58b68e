package logstore

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"time"
)

// Store is the folder of all sessions. It holds no state but its settings and
// is safe for concurrent use.
type Store struct {
	home   string
	fs     fileSystem
	random func([]byte)
	probe  func(ctx context.Context, socket string) bool
	redact func([]byte) []byte
	busy   time.Duration // busyWait
}

// Option changes a setting of a Store.
type Option func(*Store)

// WithRandom sets what fills the bytes from which ids get their random part. It
// may be called from several goroutines at once.
func WithRandom(fill func([]byte)) Option { return func(s *Store) { s.random = fill } }

// WithProbe sets how an owner's socket is asked whether anybody is there. It
// returns soon after ctx ends. Without it, the socket must answer one ping.
func WithProbe(probe func(ctx context.Context, socket string) bool) Option {
	return func(s *Store) { s.probe = probe }
}

// WithRedact sets what every header and every event's payload goes through, as
// JSON, before it is written. It may change the length, must leave one JSON
// value, and may be called from several goroutines at once.
func WithRedact(redact func([]byte) []byte) Option { return func(s *Store) { s.redact = redact } }

func withFS(fsys fileSystem) Option { return func(s *Store) { s.fs = fsys } }

// New is the store under the product's home folder. It touches nothing.
func New(home string, opts ...Option) *Store {
	s := &Store{home: home, fs: osFS{}, random: systemRandom, probe: ping, busy: busyWait}
	for _, o := range opts {
		o(s)
	}
	return s
}

func (s *Store) root() string { return filepath.Join(s.home, "sessions") }

// Dir is the folder of the sessions of a working directory, an absolute path
// with its symbolic links resolved. It need not exist.
func (s *Store) Dir(cwd string) string { return filepath.Join(s.root(), slug(cwd)) }

// systemRandom never fails: where the system has no randomness, the library
// ends the program.
func systemRandom(p []byte) { _, _ = rand.Read(p) }
