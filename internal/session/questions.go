package session

// Questions folds the log into the state of every tracked question.
type Questions struct{}

// Apply consumes the next event.
func (q *Questions) Apply(Event) error { return nil }
