package config

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"deepseek/internal/model"
)

// bind fills the fields from the values.
func (c *Config) bind() error {
	c.Model = get[string](c, "model")
	c.BaseURL = strings.TrimRight(get[string](c, "base_url"), "/")
	c.Effort = get[string](c, "effort")
	c.MaxTokens = get[int](c, "max_tokens")
	c.Temperature = pointer[float64](c, "temperature")
	c.Answerer = get[string](c, "answerer")
	c.Permission = get[string](c, "permission")
	c.Approve = get[string](c, "approve")
	c.MaxSteps = get[int](c, "max_steps")
	c.MaxDuration = get[time.Duration](c, "max_duration")
	c.MaxGoalRounds = get[int](c, "max_goal_rounds")
	c.OnQuestion = get[string](c, "on_question")
	c.FailOnPending = get[bool](c, "fail_on_pending")
	c.Output = get[string](c, "output")
	c.Color = get[string](c, "color")
	c.Quiet = get[bool](c, "quiet")
	c.Verbose = get[bool](c, "verbose")
	c.keyCommand = get[string](c, "key_command")
	c.ContextWindow = get[int](c, "context_window")
	c.Prices = get[map[string]model.Price](c, "prices")
	for _, s := range get[map[string]Server](c, "mcp_servers") {
		var err error
		if s.Cwd, err = c.expand(s.Cwd); err != nil {
			return &Error{Source: c.Source("mcp_servers"), Key: "mcp_servers." + s.Name + ".cwd", Reason: err.Error()}
		}
		c.Servers = append(c.Servers, s)
	}
	sort.Slice(c.Servers, func(i, j int) bool { return c.Servers[i].Name < c.Servers[j].Name })
	if err := c.bindPaths(); err != nil {
		return err
	}
	if c.Quiet && c.Verbose { // the nearer one counts
		q, v := c.Source("quiet"), c.Source("verbose")
		if q.Origin == FromFlag && v.Origin == FromFlag {
			return &Error{Source: q, Key: "quiet", Reason: "cannot go together with --verbose"}
		}
		c.Quiet = q.Origin >= v.Origin
		c.Verbose = !c.Quiet
	}
	return nil
}

// bindPaths makes the paths of the user file absolute: ~/ is the person's home,
// and a relative key file lies beside the configuration.
func (c *Config) bindPaths() error {
	if p := get[string](c, "key_file"); p != "" {
		full, err := c.expand(p)
		if err != nil {
			return &Error{Source: c.values["key_file"].source, Key: "key_file", Reason: err.Error()}
		}
		if !filepath.IsAbs(full) {
			full = filepath.Join(filepath.Dir(c.UserFile), full)
		}
		c.KeyFile = full
	}
	paths, set := c.values["sandbox_writable"].data.([]string)
	if set {
		c.SandboxWritable = []string{}
	}
	for _, p := range paths {
		full, err := c.expand(p)
		if err != nil {
			return &Error{Source: c.values["sandbox_writable"].source, Key: "sandbox_writable", Reason: err.Error()}
		}
		c.SandboxWritable = append(c.SandboxWritable, filepath.Clean(full))
	}
	return nil
}

func (c *Config) expand(p string) (string, error) {
	if p != "~" && !strings.HasPrefix(p, "~/") {
		return p, nil
	}
	home, _ := lookupEnv(c.environ, "HOME")
	if home == "" {
		return "", fmt.Errorf("%q needs the variable HOME, which is not set", p)
	}
	return filepath.Join(home, strings.TrimPrefix(p, "~")), nil
}

func get[T any](c *Config, key string) T {
	v, _ := c.values[key].data.(T) // an unset value reads as zero
	return v
}

func pointer[T any](c *Config, key string) *T {
	v, ok := c.values[key].data.(T)
	if !ok {
		return nil
	}
	return &v
}
