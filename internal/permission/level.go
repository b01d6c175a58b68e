package permission

import (
	"fmt"
	"sync"
)

// levelCell holds the level of a policy and of those made from it. It is safe
// for concurrent use.
type levelCell struct {
	mu    sync.Mutex
	level Level
}

func (c *levelCell) get() Level {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// CheckLevel refuses a word that is no level.
func CheckLevel(l Level) error {
	switch l {
	case ReadOnly, WorkspaceWrite, FullAccess:
		return nil
	}
	return fmt.Errorf("permission %q: want %s, %s or %s", l, ReadOnly, WorkspaceWrite, FullAccess)
}

// SetLevel changes what the session may do without asking, because its user
// said so. It counts for every decision that begins from now on; what was
// allowed and runs already goes on.
func (p *Policy) SetLevel(l Level) error {
	if err := CheckLevel(l); err != nil {
		return err
	}
	p.level.mu.Lock()
	defer p.level.mu.Unlock()
	p.level.level = l
	return nil
}
