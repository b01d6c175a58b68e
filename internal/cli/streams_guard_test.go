package cli

import (
	"slices"
	"testing"

	"deepseek/internal/config"
)

// TestTheGuardOfTheTerminalKnowsNoKey: what is in a process's environment can be read by others.
func TestTheGuardOfTheTerminalKnowsNoKey(t *testing.T) {
	env := []string{"A=1", config.KeyVariable + "=sk-secret", "DEEPSEEK_TOOL=1"}
	cmd := selfAsGuard(env)(nil, nil)
	if want := []string{"A=1", "DEEPSEEK_TOOL=1"}; !slices.Equal(cmd.Env, want) {
		t.Errorf("%q, want %q", cmd.Env, want)
	}
	if len(env) != 3 || env[1] != config.KeyVariable+"=sk-secret" {
		t.Errorf("the program's own environment has changed: %q", env)
	}
	if newApp(Streams{}, env).guard != nil {
		t.Error("a program that is not this one would be started as a guard")
	}
}
