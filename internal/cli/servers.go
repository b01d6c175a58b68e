package cli

import (
	"context"
	"os/exec"
	"sync"

	"deepseek/internal/permission"
	"deepseek/internal/tool"
	"deepseek/internal/tool/mcp"
	"deepseek/internal/version"
	"deepseek/internal/view"
)

// serverTools brings the MCP servers of the user's configuration, and those that
// an editor passes on, up and returns
// their tools. Their programs belong to the shell's family, which ends what they
// leave behind.
func (o *owner) serverTools(ctx context.Context, policy *permission.Policy) ([]tool.Tool, error) {
	if len(o.cfg.Servers) == 0 {
		return nil, nil
	}
	o.voice.use(o.warnLine)
	env := mcp.Env{
		Servers: o.cfg.Servers, Cwd: o.cwd, Home: o.app.Getenv("HOME"),
		Serve: func(cmd *exec.Cmd) (mcp.Service, error) { return o.shell.Serve(cmd) },
		Key:   o.key, Version: version.Current().Version, Note: o.warnLine,
	}
	if o.cfg.Verbose {
		env.Stderr = func(server, line string) { o.voice.say(server + ": " + line) }
	}
	o.servers = mcp.New(env)
	if err := o.servers.Start(ctx); err != nil {
		return nil, err
	}
	return o.servers.Tools(policy), nil
}

func (o *owner) warnLine(line string) {
	if o.app.ErrTerminal() {
		line = view.Visible(line)
	}
	o.app.Warnf("deepseek: %s\n", line)
}

// voice is where lines go that come at any time: to stderr, and from the moment
// when there is a screen, to that, which does not write into a card. mu owns to.
type voice struct {
	mu sync.Mutex
	to func(line string)
}

func (v *voice) use(to func(string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.to = to
}

func (v *voice) say(line string) {
	v.mu.Lock()
	to := v.to
	v.mu.Unlock()
	to(line)
}
