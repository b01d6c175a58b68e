package acp

import (
	"cmp"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/config"
)

// servers are the MCP servers that a client passes on, as the configuration
// would have them. None is trusted: that is the user's word in the
// configuration. One that cannot be used is left out and named, as one that does
// not come up is, for editors pass on all they have.
func (s *server) servers(passed []sdk.McpServer) []config.Server {
	var used []config.Server
	seen := map[string]bool{}
	for _, p := range passed {
		c, err := passedServer(p)
		switch {
		case err != nil:
		case seen[c.Name]:
			err = errors.New("its name stands twice")
		default:
			err = c.Check()
		}
		if err != nil {
			s.o.Note(fmt.Sprintf("the MCP server %s is left out: %v", cmp.Or(clip(c.Name), "without a name"), err))
			continue
		}
		seen[c.Name] = true
		used = append(used, c)
	}
	return used
}

// passedServer is one of them. After an error it has its name alone.
func passedServer(p sdk.McpServer) (config.Server, error) {
	switch {
	case p.Stdio != nil:
		c := config.Server{Name: p.Stdio.Name, Command: p.Stdio.Command, Args: p.Stdio.Args, Env: map[string]string{}}
		for _, v := range p.Stdio.Env {
			c.Env[v.Name] = v.Value
		}
		return c, nil
	case p.Http != nil && p.Http.Type == "http":
		c := config.Server{Name: p.Http.Name, URL: p.Http.Url, Headers: map[string]string{}}
		for _, h := range p.Http.Headers {
			c.Headers[h.Name] = h.Value
		}
		return c, nil
	case p.Http != nil: // what the SDK takes anything else for
		return config.Server{Name: p.Http.Name}, errors.New("it has neither a command with args and env nor a type that is known")
	case p.Sse != nil:
		return config.Server{Name: p.Sse.Name}, errors.New("SSE is not offered, HTTP is")
	case p.Acp != nil:
		return config.Server{Name: p.Acp.Name}, errors.New("servers behind the client are not offered")
	}
	return config.Server{}, errors.New("it is of no kind that is known")
}
