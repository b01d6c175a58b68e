package config

import "fmt"

// Waits says how questions are asked.
type Waits struct {
	Mode       string // Legacy or Timed
	Timeout    int    // seconds of a wait that the model does not give a length, -1 = for ever
	MaxTimeout *int   // the cap of what the model may ask for; nil = none
}

// Waits settles mode, timeout and cap, which depend on each other. logged is
// what the session's log holds on a resume, else nil: it stands against files
// and defaults, not against flags and variables. Errors are *Error.
//
// A cap below the timeout is an error where the person chose both. Where one
// of them is a default or a project's, it gives way: a repository must not be
// able to stop a run.
func (c *Config) Waits(logged *Waits) (Waits, error) {
	w := Waits{Mode: get[string](c, "mode"), Timeout: get[int](c, "timeout"), MaxTimeout: pointer[int](c, "max_timeout")}
	wait, limit := c.Source("timeout"), c.Source("max_timeout")
	session := Source{Origin: FromEnv, Name: "the session's log"} // counts like a person's word
	if logged != nil && !c.Explicit("mode") {
		w.Mode = logged.Mode
	}
	if logged != nil && logged.Mode == Timed {
		if !c.Explicit("timeout") {
			w.Timeout, wait = logged.Timeout, Source{}
		}
		if !c.Explicit("max_timeout") {
			w.MaxTimeout, limit = logged.MaxTimeout, session
		}
	}
	if w.Mode == Legacy {
		for _, src := range []Source{wait, limit} {
			if src.Origin == FromFlag {
				return Waits{}, &Error{Source: src, Reason: "has no place in legacy mode; add --mode timed, or leave it out"}
			}
		}
		return Waits{Mode: Legacy, Timeout: DefaultTimeout}, nil
	}
	if w.MaxTimeout == nil || !longer(w.Timeout, *w.MaxTimeout) {
		return w, nil
	}
	switch {
	case wait.Origin == FromDefault || wait.Origin == FromProject:
		w.Timeout = *w.MaxTimeout
	case limit.Origin == FromProject:
		w.MaxTimeout = &w.Timeout
	default:
		return Waits{}, &Error{Source: limit, Key: "max_timeout", Reason: fmt.Sprintf(
			"a longest wait of %d seconds is below the timeout of %d (%s)", *w.MaxTimeout, w.Timeout, wait.place())}
	}
	return w, nil
}

func longer(a, b int) bool { return b != -1 && (a == -1 || a > b) }
