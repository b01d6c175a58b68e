package config

import "testing"

func TestCheckOfAServerFromElsewhere(t *testing.T) {
	for _, c := range []struct {
		server Server
		ok     bool
	}{
		{Server{Name: "a-b_c", Command: "x"}, true},
		{Server{Name: "web", URL: "https://example.com/mcp"}, true},
		{Server{Name: "a__b", Command: "x"}, false},
		{Server{Name: "my server", Command: "x"}, false},
		{Server{Command: "x"}, false},
		{Server{Name: "a"}, false},
		{Server{Name: "a", Command: "x", URL: "https://example.com"}, false},
		{Server{Name: "a", URL: "file:///x"}, false},
	} {
		if err := c.server.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.server, err)
		}
	}
}
