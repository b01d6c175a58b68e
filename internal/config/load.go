package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/viper"

	"deepseek/internal/model"
)

// Options is what Load is told. It reads nothing else of the process.
type Options struct {
	Home        string            // the product's folder, absolute
	ConfigFile  string            // the user file where --config names one, absolute
	ProjectRoot string            // the workspace's root, absolute; "" = no project file
	Environ     []string          // NAME=value
	Flags       map[string]string // the flags that were given, by key
}

// Config is the settings of one process. It is read only once loaded, and so
// safe for concurrent use.
type Config struct {
	Home     string
	UserFile string   // whether it exists or not
	Warnings []string // one line each, for stderr

	Model           string
	BaseURL         string
	Effort          string // "" = unset, so for the other settings without a default
	MaxTokens       int
	Temperature     *float64
	Answerer        string
	Permission      string
	Approve         string
	MaxSteps        int
	MaxDuration     time.Duration
	MaxGoalRounds   int
	OnQuestion      string
	FailOnPending   bool
	Output          string
	Color           string
	Quiet           bool
	Verbose         bool
	KeyFile         string // absolute
	ContextWindow   int    // tokens, of a model that is not known
	Prices          map[string]model.Price
	Servers         []Server // in the order of their names
	SandboxWritable []string // absolute; nil = not set, the built-in list holds

	keyCommand string
	environ    []string
	values     map[string]value
}

// Load reads the layers. Its errors are *Error.
func Load(o Options) (*Config, error) {
	c := &Config{Home: o.Home, UserFile: o.UserFile(), environ: o.Environ, values: map[string]value{}}
	user, err := c.userLayer(o.ConfigFile != "")
	if err != nil {
		return nil, err
	}
	env, err := envLayer(o.Environ)
	if err != nil {
		return nil, err
	}
	flags, err := flagLayer(o.Flags)
	if err != nil {
		return nil, err
	}
	merged, err := merge(user, c.projectLayer(o.ProjectRoot), env, flags)
	if err != nil {
		return nil, err
	}
	for _, s := range Settings() {
		if v, ok := merged.Get(s.Key).(value); ok {
			c.values[s.Key] = v
		}
	}
	return c, c.bind()
}

// merge settles the precedence: of two layers that have a value, the later
// wins, and all of them over the defaults. viper holds our values whole, with
// their sources: it neither decodes them nor looks into them.
func merge(layers ...layer) (*viper.Viper, error) {
	v := viper.New()
	for _, s := range Settings() {
		v.SetDefault(s.Key, value{data: s.Default})
	}
	for _, l := range layers {
		whole := make(map[string]any, len(l))
		for key, val := range l {
			whole[key] = val
		}
		if err := v.MergeConfigMap(whole); err != nil {
			return nil, fmt.Errorf("merge the settings: %w", err)
		}
	}
	return v, nil
}

func (c *Config) userLayer(named bool) (layer, error) {
	r := reader{path: c.UserFile, origin: FromUser, fault: func(e *Error) error { return e }}
	data, err := readRegular(c.UserFile, maxFile)
	if missing(err) && !named {
		return nil, nil
	}
	if err != nil {
		reason := "the configuration cannot be read: " + plainReason(err)
		if missing(err) {
			reason = "there is no such configuration file"
		}
		bad := r.errorAt(0, "", "%s", reason)
		bad.Unread = true
		return nil, bad
	}
	return r.read(data)
}

// projectLayer never fails: a repository must not be able to stop a run by its file.
func (c *Config) projectLayer(root string) layer {
	if root == "" {
		return nil
	}
	path := filepath.Join(root, ".deepseek", "config.yaml")
	if SameFile(path, c.UserFile) || SameFile(path, filepath.Join(c.Home, "config.yaml")) {
		return nil
	}
	r := reader{path: path, origin: FromProject, fault: func(e *Error) error {
		text := e.Error()
		if !strings.Contains(e.Reason, "ignored") {
			text += "; ignored"
		}
		c.Warnings = append(c.Warnings, text)
		return nil
	}}
	data, err := readRegular(path, maxFile)
	if missing(err) {
		return nil
	}
	if err != nil {
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: %s; ignored", path, plainReason(err)))
		return nil
	}
	l, _ := r.read(data) // fault never ends the reading
	return l
}

func envLayer(environ []string) (layer, error) {
	out := layer{}
	for _, s := range Settings() {
		text, ok := lookupEnv(environ, s.Env())
		if !ok || text == "" { // an empty variable is as good as none
			continue
		}
		src := Source{Origin: FromEnv, Name: s.Env()}
		v, err := s.parse(text)
		if err != nil {
			return nil, &Error{Source: src, Key: s.Key, Reason: err.Error()}
		}
		out[s.Key] = value{data: v, source: src}
	}
	return out, nil
}

func flagLayer(given map[string]string) (layer, error) {
	out := layer{}
	for _, s := range Settings() {
		text, ok := given[s.Key]
		if !ok {
			continue
		}
		src := Source{Origin: FromFlag, Name: "--" + s.FlagName()}
		v, err := s.parse(text)
		if err != nil {
			return nil, &Error{Source: src, Key: s.Key, Reason: err.Error()}
		}
		out[s.Key] = value{data: v, source: src}
	}
	return out, nil
}

// lookupEnv finds a variable; the first entry of a name counts, as in the system's own lookup.
func lookupEnv(environ []string, name string) (string, bool) {
	if name == "" {
		return "", false
	}
	for _, kv := range environ {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:], true
		}
	}
	return "", false
}

// SameFile tells whether two paths name one file, by whatever links. Where one of
// them cannot be looked at, only the same words do.
func SameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// plainReason drops the operation and the path, which the error names already.
func plainReason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// UserFile is the user file's path, whether it exists or not.
func (o Options) UserFile() string {
	if o.ConfigFile != "" {
		return o.ConfigFile
	}
	return filepath.Join(o.Home, "config.yaml")
}
