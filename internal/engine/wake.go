package engine

// Wake begins to work on what is queued. Where nothing is, or the agent is at
// work already, it does nothing.
func (a *Agent) Wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.leaving && a.state.Inbox.Waiting() {
		a.wake()
	}
}
