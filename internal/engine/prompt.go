package engine

import (
	_ "embed"
	"strings"
)

//go:embed system.md
var systemText string

// SystemText is what a new session tells the model first. It holds nothing
// that changes from run to run, so that servers can cache it.
func SystemText() string { return strings.TrimSpace(systemText) }
