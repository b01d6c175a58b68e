package fakellm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"go.yaml.in/yaml/v3"
)

// Script is what a server plays: step k answers the k-th request that breaks no rule.
type Script struct {
	Steps []Step `yaml:"steps"`
	// Next, where it is set, is asked instead. Requests count from 0.
	Next func(n int, r Request) Step `yaml:"-"`

	Lenient    bool `yaml:"lenient"`
	Rewrites   bool `yaml:"rewrites"`
	RepeatLast bool `yaml:"repeat_last"`
}

// Step is one answer. The zero value is an answer without text.
type Step struct {
	Text      string `yaml:"text"`
	Reasoning string `yaml:"reasoning"`
	Calls     []Call `yaml:"calls"`
	Finish    string `yaml:"finish"` // default: tool_calls or stop
	Usage     *Usage `yaml:"usage"`  // default: numbers that grow with the request
	NoUsage   bool   `yaml:"no_usage"`
	NoDone    bool   `yaml:"no_done"`

	// Raw replaces the stream; each piece is sent by itself.
	Raw []string `yaml:"raw"`
	// A Status other than 0 and 200 sends Body. Headers go with any status.
	Status  int               `yaml:"status"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`

	Chunk      int           `yaml:"chunk"`
	FirstDelay time.Duration `yaml:"first_delay"`
	Delay      time.Duration `yaml:"delay"`

	Cut    Cut  `yaml:"cut"`
	CutAt  int  `yaml:"cut_at"`
	Hold   bool `yaml:"hold"`
	HoldAt int  `yaml:"hold_at"` // 0: before the headers
}

// Cut is how an answer ends too early.
type Cut string

// The cuts.
const (
	CutEnd   Cut = "end"   // the body ends as if it were whole
	CutClose Cut = "close" // the connection closes in the middle of the body
	CutReset Cut = "reset" // the connection is reset
)

// Call is a tool call of a step. An empty ID gets one that this server has not used.
type Call struct {
	ID        string    `yaml:"id"`
	Name      string    `yaml:"name"`
	Arguments Arguments `yaml:"arguments"`
}

// Arguments are the raw arguments of a call. In a file they are a string, sent
// as it is, or a mapping, sent as JSON with sorted keys.
type Arguments string

// UnmarshalYAML reads either form.
func (a *Arguments) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*a = Arguments(n.Value)
		return nil
	}
	var v map[string]any
	if err := n.Decode(&v); err != nil {
		return err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	*a = Arguments(raw)
	return nil
}

// Usage is what a server reports: Prompt includes Cached, Completion Reasoning.
type Usage struct {
	Prompt     int `yaml:"prompt"`
	Cached     int `yaml:"cached"`
	Completion int `yaml:"completion"`
	Reasoning  int `yaml:"reasoning"`
}

// LoadScript reads a script from a file.
func LoadScript(path string) (Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Script{}, err
	}
	var s Script
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("%s: %w", path, err)
	}
	for i, step := range s.Steps {
		switch step.Cut {
		case "", CutEnd, CutClose, CutReset:
		default:
			return Script{}, fmt.Errorf("%s: step %d: cut must be end, close or reset, not %q", path, i, step.Cut)
		}
	}
	return s, nil
}
