package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"deepseek/internal/model"
)

// Value is a setting with where it came from, as people and programs may see
// it: whatever may be a secret is left out.
type Value struct {
	Key    string
	Data   any // of JSON's types; nil where unset
	Source Source
}

// Value returns one setting.
func (c *Config) Value(key string) (Value, bool) {
	s, ok := Lookup(key)
	if !ok {
		return Value{}, false
	}
	v := c.values[key]
	return Value{Key: key, Data: shown(s, v.data), Source: v.source}, true
}

// Values returns all settings in the list's order.
func (c *Config) Values() []Value {
	var out []Value
	for _, s := range Settings() {
		v, _ := c.Value(s.Key)
		out = append(out, v)
	}
	return out
}

// Source says where a setting came from.
func (c *Config) Source(key string) Source { return c.values[key].source }

// Explicit says that a flag or a variable gave the value. On a resume only
// such values stand against what the session's log holds.
func (c *Config) Explicit(key string) bool { return c.values[key].source.Origin >= FromEnv }

// Text is the value on one line, "" where unset.
func (v Value) Text() string {
	switch d := v.Data.(type) {
	case nil:
		return ""
	case string:
		if strings.ContainsAny(d, "\n\r\t") {
			return strconv.Quote(d)
		}
		return d
	case float64, int, bool:
		return fmt.Sprint(d)
	}
	raw, err := json.Marshal(v.Data) // maps are encoded in the order of their keys
	if err != nil {
		return fmt.Sprint(v.Data)
	}
	return string(raw)
}

// hiddenValue stands for what is never shown.
const hiddenValue = "(hidden)"

func shown(s Setting, data any) any {
	if data == nil {
		return nil
	}
	if s.Hidden {
		return hiddenValue
	}
	switch d := data.(type) {
	case time.Duration:
		return d.String()
	case map[string]model.Price:
		out := map[string]any{}
		for name, p := range d {
			out[name] = map[string]float64{"input": p.Input, "cached": p.Cached, "output": p.Output}
		}
		return out
	case map[string]Server:
		out := map[string]any{}
		for name, server := range d {
			out[name] = shownServer(server)
		}
		return out
	case string:
		if s.Key == "base_url" {
			return address(d)
		}
	}
	return data
}

// shownServer leaves out arguments, values of variables and headers, and all of
// an address but its host: tokens stand in each of these.
func shownServer(s Server) map[string]any {
	out := map[string]any{"trust": s.Trust}
	if s.Command != "" {
		out["command"] = filepath.Base(s.Command)
	}
	if u, err := url.Parse(s.URL); err == nil && s.URL != "" {
		out["url"] = u.Scheme + "://" + u.Host
	}
	for key, d := range map[string]time.Duration{"start_timeout": s.StartTimeout, "call_timeout": s.CallTimeout} {
		if d > 0 {
			out[key] = d.String()
		}
	}
	if len(s.Env) > 0 {
		names := make([]string, 0, len(s.Env))
		for name := range s.Env {
			names = append(names, name)
		}
		sort.Strings(names)
		out["env"] = names
	}
	return out
}

// address drops a user and a password.
func address(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return hiddenValue
	}
	u.User = nil
	return u.String()
}
