package files

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"deepseek/internal/session"
)

// Observed knows which version of each file the model has seen. The mutex owns
// the map; all methods may be called at once. The zero value is ready.
type Observed struct {
	mu     sync.Mutex
	hashes map[string]string // by absolute path, links resolved
}

// Seed takes up what a log says was seen, in its order.
func (o *Observed) Seed(seen []session.Observed) {
	for _, s := range seen {
		o.set(s.Path, s.Hash)
	}
}

func (o *Observed) set(path, hash string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hashes == nil {
		o.hashes = make(map[string]string)
	}
	o.hashes[path] = hash
}

func (o *Observed) get(path string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, ok := o.hashes[path]
	return h, ok
}

// check refuses a change of a version that the model has not seen.
func (o *Observed) check(p place, hash string) error {
	seen, ok := o.get(p.real)
	switch {
	case !ok:
		return coded{CodeNotObserved, p.shown + " exists and was not read in this session; read it first"}
	case seen != hash:
		return coded{CodeStale, p.shown + " has changed since it was read; read it again"}
	}
	return nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
