package config

import "fmt"

// Origin is the layer that a value comes from, lowest first.
type Origin int

// The origins.
const (
	FromDefault Origin = iota
	FromUser
	FromProject
	FromEnv
	FromFlag
)

// Source is where a value comes from.
type Source struct {
	Origin Origin
	Name   string // of the variable, or of the flag with its dashes
	File   string
	Line   int
}

// String is `flag`, `env NAME`, `FILE:LINE` or `default`.
func (s Source) String() string {
	switch s.Origin {
	case FromFlag:
		return "flag"
	case FromEnv:
		return "env " + s.Name
	case FromUser, FromProject:
		return s.place()
	}
	return "default"
}

func (s Source) place() string {
	if s.File == "" {
		return s.Name
	}
	if s.Line == 0 {
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// Error is a setting that cannot be used: a usage error, told before anything
// is started or written.
type Error struct {
	Source Source
	Key    string // as it was written; "" where the file as a whole is meant
	Reason string
	// Unread: the file could not be read, so that nothing in it is at fault.
	Unread bool

	twice bool // the key stands a second time, and that is all that is wrong with it
}

func (e *Error) Error() string {
	switch {
	case e.Source.Origin == FromEnv, e.Source.Origin == FromFlag, e.Key == "":
		return e.Source.place() + ": " + e.Reason
	case e.Source.File == "":
		return e.Key + ": " + e.Reason
	}
	return e.Source.place() + ": " + e.Key + ": " + e.Reason
}

// value is one setting of one layer.
type value struct {
	data   any
	source Source
}

type layer map[string]value
