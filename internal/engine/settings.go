package engine

import "deepseek/internal/session"

// ChangeSettings changes the settings from now on, at work or not, and appends
// them to the log. It does not wait for the disk: a session that is not begun
// stays so.
func (a *Agent) ChangeSettings(change func(*session.Settings)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.leaving {
		return ErrLeaving
	}
	s := a.settings()
	change(&s)
	a.opts.Settings = s
	return a.put(item{session.TypeSettings, s})
}
