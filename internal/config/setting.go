package config

import (
	"strings"

	"deepseek/internal/model"
)

// Kind is the type of a setting's value, as a reader of the file sees it.
type Kind int

// The kinds. The Go type of a value is in brackets.
const (
	Text     Kind = iota // string
	Choice               // string, one of Setting.Choices
	Whole                // int
	Number               // float64
	Switch               // bool
	Duration             // time.Duration
	Paths                // []string
	Prices               // map[string]model.Price
	Servers              // map[string]Server
)

func (k Kind) String() string {
	return [...]string{"text", "a word", "a whole number", "a number", "true or false", "a duration such as 90s or 2h", "a list of paths", "a map of prices", "a map of servers"}[k]
}

// Setting is one entry of the closed list.
type Setting struct {
	Key     string
	Kind    Kind
	Default any // nil where the setting has none
	Choices []string
	Usage   string // one line for --help
	Flag    bool   // has a flag and a variable
	Short   string // the flag's letter
	Project bool   // may stand in a project file
	Hidden  bool   // the value may hold a secret and is never shown

	check func(any) error
}

// FlagName is the key as a flag: max_steps is --max-steps.
func (s Setting) FlagName() string { return strings.ReplaceAll(s.Key, "_", "-") }

// Env is the variable of the setting, "" where it has none.
func (s Setting) Env() string {
	if !s.Flag {
		return ""
	}
	return "DEEPSEEK_" + strings.ToUpper(s.Key)
}

// DefaultTimeout is the wait of timed mode in seconds.
const DefaultTimeout = 120

// The modes of asking a person.
const (
	Legacy = "legacy"
	Timed  = "timed"
)

// Settings returns the closed list, in the order in which it is shown. The
// caller owns the slice.
func Settings() []Setting {
	return []Setting{
		{Key: "model", Kind: Text, Default: model.Default, Flag: true, Project: true, check: notBlank, Usage: "`name` of the model, or demo, or script:FILE"},
		{Key: "base_url", Kind: Text, Default: "https://api.deepseek.com", Flag: true, check: baseAddress, Usage: "`address` of an OpenAI-compatible server"},
		{Key: "effort", Kind: Choice, Choices: []string{"off", "low", "high", "max"}, Flag: true, Project: true, Usage: "how long the model thinks"},
		{Key: "max_tokens", Kind: Whole, Flag: true, check: atLeast(1), Usage: "most tokens of one answer"},
		{Key: "temperature", Kind: Number, Flag: true, check: between(0, 2), Usage: "randomness, a `number` from 0 to 2"},
		{Key: "mode", Kind: Choice, Default: Legacy, Choices: []string{Legacy, Timed}, Flag: true, Project: true, Usage: "whether questions to you have a time limit"},
		{Key: "timeout", Kind: Whole, Default: DefaultTimeout, Flag: true, Project: true, check: waitSeconds, Usage: "`seconds` a question waits in timed mode, -1 for ever"},
		{Key: "max_timeout", Kind: Whole, Flag: true, Project: true, check: waitSeconds, Usage: "most `seconds` the model may ask a question to wait"},
		{Key: "answerer", Kind: Choice, Default: "auto", Choices: []string{"auto", "tty", "remote", "none"}, Flag: true, Usage: "who answers questions"},
		{Key: "permission", Kind: Choice, Default: "workspace-write", Choices: []string{"read-only", "workspace-write", "full-access"}, Flag: true, Usage: "what tools may do unasked"},
		{Key: "approve", Kind: Choice, Default: "ask", Choices: []string{"ask", "never"}, Flag: true, Usage: "what becomes of requests for more"},
		{Key: "max_steps", Kind: Whole, Default: 200, Flag: true, Project: true, check: atLeast(1), Usage: "most model requests of a run"},
		{Key: "max_duration", Kind: Duration, Flag: true, Project: true, check: positive, Usage: "most `time` of a run, such as 90s or 2h"},
		{Key: "max_goal_rounds", Kind: Whole, Default: 256, Flag: true, check: between(1, 256), Usage: "most rounds of a goal"},
		{Key: "on_question", Kind: Text, Flag: true, check: shellText, Usage: "`command` to run when a question opens or is left pending"},
		{Key: "fail_on_pending", Kind: Switch, Default: false, Flag: true, Usage: "exit 3 if questions are left without an answer"},
		{Key: "output", Kind: Choice, Default: "text", Choices: []string{"text", "json", "stream-json"}, Flag: true, Usage: "what stdout carries"},
		{Key: "color", Kind: Choice, Default: "auto", Choices: []string{"auto", "always", "never"}, Flag: true, Project: true, Usage: "colours on stderr"},
		{Key: "quiet", Kind: Switch, Default: false, Flag: true, Short: "q", Usage: "show only the session id, questions and errors"},
		{Key: "verbose", Kind: Switch, Default: false, Flag: true, Short: "v", Usage: "show more of the work"},
		{Key: "key_file", Kind: Text, check: notBlank},
		{Key: "key_command", Kind: Text, check: shellText, Hidden: true},
		{Key: "context_window", Kind: Whole, check: atLeast(1)},
		{Key: "prices", Kind: Prices},
		{Key: "mcp_servers", Kind: Servers},
		{Key: "sandbox_writable", Kind: Paths},
	}
}

// Lookup finds a setting by its key.
func Lookup(key string) (Setting, bool) {
	for _, s := range Settings() {
		if s.Key == key {
			return s, true
		}
	}
	return Setting{}, false
}

// keys lists the names of the settings, or of those that a project may set.
func keys(projectOnly bool) []string {
	var out []string
	for _, s := range Settings() {
		if s.Project || !projectOnly {
			out = append(out, s.Key)
		}
	}
	return out
}
