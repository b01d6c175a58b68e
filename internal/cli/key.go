package cli

import (
	"context"
	"strings"

	"deepseek/internal/config"
	"deepseek/internal/redact"
)

// hide keeps a key out of everything that is shown from here on, in the place of
// the one before. None, "", changes nothing.
func (a *App) hide(key string) {
	if key == "" {
		return
	}
	k := redact.New(key)
	a.Out.hide(k)
	a.Err.hide(k)
}

// key is what is not to be shown: the key in use, as far as it is known by now.
func (a *App) key() redact.Key { return a.Out.hidden() }

// lookForKey hides the key of key_file. Load does that too: this is for commands
// that show logs and need no settings, for arguments that are not understood, and
// goes on whatever is wrong with the settings.
func (a *App) lookForKey() {
	if strings.TrimSpace(a.Getenv(config.KeyVariable)) != "" {
		return // known from the beginning
	}
	o, err := a.options(nil)
	if err != nil {
		return
	}
	if c, err := config.Load(o); err == nil {
		a.hide(c.Known())
	}
}

// findKey finds the key for a server that is to be asked, running key_command
// where it has to, and hides it.
func (a *App) findKey(ctx context.Context, c *config.Config) (string, error) {
	key, err := c.Key(ctx)
	if err == nil {
		a.hide(key)
	}
	return key, err
}
