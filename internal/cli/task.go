package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"deepseek/internal/config"
	"deepseek/internal/engine"
)

// task is one task of a run. The zero value is what is queued already.
type task struct {
	text     string
	reply    *engine.Input // a late answer instead of a text
	mode     string        // "" = as the run's
	timeout  *int          // seconds; nil = as the run's
	maxSteps int           // 0 = as the run's
}

// own tells whether the task says anything for itself.
func (t task) own() bool { return t.mode != "" || t.timeout != nil || t.maxSteps != 0 }

func (t task) input() *engine.Input {
	if t.reply != nil || t.text == "" {
		return t.reply
	}
	return engine.Task(t.text)
}

// taskSource is where the command line says the task is.
type taskSource struct {
	args      []string
	file      string
	fileGiven bool
	script    string
}

const maxTask = 8 << 20 // bytes

// read reads the task or tasks. None is possible only where optional says so.
func (s taskSource) read(ctx context.Context, a *App, optional bool) ([]task, error) {
	given := len(s.args)
	if s.fileGiven {
		given++
	}
	if s.script != "" {
		given++
	}
	switch {
	case given > 1 && len(s.args) > 1:
		return nil, usagef("the task is one argument, not %d\nput it in quotes: deepseek run %s", len(s.args), quote(cut(strings.Join(s.args, " "))))
	case given > 1:
		return nil, usagef("the task is given more than once\ngive it as an argument, with -f FILE, as - for stdin, or with --script FILE")
	case given == 0 && optional:
		return nil, nil
	case given == 0:
		return nil, usagef("run needs a task\ngive it as an argument, with -f FILE, or as - to read stdin")
	case s.script != "":
		return readTasks(s.script)
	}
	text, err := s.text(ctx, a)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) == "" {
		return nil, usagef("the task is empty\nsay what is to be done")
	}
	if !utf8.ValidString(text) {
		return nil, usagef("the task is not UTF-8 text\nconvert it first, for instance with iconv")
	}
	return []task{{text: text}}, nil
}

func (s taskSource) text(ctx context.Context, a *App) (string, error) {
	switch {
	case s.fileGiven:
		return readText(s.file)
	case s.args[0] == "-":
		return a.readStdin(ctx)
	}
	return s.args[0], nil
}

func readText(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return "", usagef("cannot read the task from %s: it is a directory\nname a file in it", path)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(path)
	}
	if err != nil {
		return "", usagef("cannot read the task from %s: %v\nname a text file that can be read, or - for stdin", path, reason(err))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTask+1))
	_ = f.Close() // read only
	return limited(data, err, path)
}

// readStdin reads to the end, or to the end of ctx: then the reading goroutine
// stays behind with the process's stdin, which nobody else reads.
func (a *App) readStdin(ctx context.Context) (string, error) {
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	type read struct {
		data []byte
		err  error
	}
	got := make(chan read, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(a.streams.In, maxTask+1))
		got <- read{data, err}
	}()
	select {
	case r := <-got:
		return limited(r.data, r.err, "stdin")
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func limited(data []byte, err error, from string) (string, error) {
	if err != nil {
		return "", usagef("cannot read the task from %s: %v\ngive it as an argument, or with -f FILE", from, reason(err))
	}
	if len(data) > maxTask {
		return "", usagef("the task in %s is longer than %d MB\nname the file in the task instead, and it will be read", from, maxTask>>20)
	}
	return string(bytes.TrimRight(data, "\r\n")), nil
}

// readTasks reads a script of tasks: YAML with a list `tasks` of strings or of
// {task, mode, timeout, max_steps}.
func readTasks(path string) ([]task, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Tasks []scriptTask `yaml:"tasks"`
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, usagef("%s: %s\na script is a list `tasks:` of strings or of {task, mode, timeout, max_steps}", path, yamlReason(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, usagef("%s: there is a second document in it\nput all tasks into one list `tasks:`", path)
	}
	if len(file.Tasks) == 0 {
		return nil, usagef("%s: there is no task in it\na script is a list `tasks:` of strings or of {task, mode, timeout, max_steps}", path)
	}
	tasks := make([]task, len(file.Tasks))
	for i, t := range file.Tasks {
		if err := t.check(); err != nil {
			return nil, usagef("%s:%d: task %d: %v\na task is a string or {task, mode, timeout, max_steps}", path, t.line, i+1, err)
		}
		tasks[i] = task{text: t.Task, mode: t.Mode, timeout: t.Timeout}
		if t.MaxSteps != nil {
			tasks[i].maxSteps = *t.MaxSteps
		}
	}
	return tasks, nil
}

type scriptTask struct {
	Task     string `yaml:"task"`
	Mode     string `yaml:"mode"`
	Timeout  *int   `yaml:"timeout"`
	MaxSteps *int   `yaml:"max_steps"`
	line     int
}

// UnmarshalYAML takes a string for the task alone.
func (t *scriptTask) UnmarshalYAML(n *yaml.Node) error {
	t.line = n.Line
	if n.Kind == yaml.ScalarNode {
		t.Task = n.Value
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		known := []string{"task", "mode", "timeout", "max_steps"}
		if err := oneOf("key", n.Content[i].Value, known); err != nil {
			return fmt.Errorf("line %d: %w", n.Content[i].Line, err)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k, v := n.Content[i], n.Content[i+1]; (k.Value == "timeout" || k.Value == "max_steps") && v.Tag != "!!int" {
			return fmt.Errorf("line %d: %s is %q, want a whole number", v.Line, k.Value, v.Value)
		}
	}
	type plain scriptTask // without this method
	if err := n.Decode((*plain)(t)); err != nil {
		return err
	}
	t.line = n.Line
	return nil
}

func (t scriptTask) check() error {
	switch {
	case strings.TrimSpace(t.Task) == "":
		return fmt.Errorf("the task is empty")
	case t.Mode != "" && t.Mode != config.Legacy && t.Mode != config.Timed:
		return fmt.Errorf("mode %q is neither legacy nor timed", t.Mode)
	case t.Timeout != nil && t.Mode == config.Legacy:
		return fmt.Errorf("timeout has no place in legacy mode")
	case t.Timeout != nil && *t.Timeout != -1 && (*t.Timeout < 1 || *t.Timeout > config.MaxWait):
		return fmt.Errorf("timeout %d is out of range: a whole number from 1 to %d, or -1", *t.Timeout, config.MaxWait)
	case t.MaxSteps != nil && *t.MaxSteps < 1:
		return fmt.Errorf("max_steps %d is below 1", *t.MaxSteps)
	}
	return nil
}

// yamlReason is a YAML error on one line.
func yamlReason(err error) string {
	words := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	words, _, _ = strings.Cut(words, " in type ") // a name of ours
	words = strings.TrimPrefix(words, "unmarshal errors: ")
	return yamlMismatch().ReplaceAllStringFunc(words, func(s string) string {
		m := yamlMismatch().FindStringSubmatch(s)
		return fmt.Sprintf("%s%s is no %s", yamlKind(m[1]), m[2], goKind(m[3]))
	})
}

// yamlMismatch is how the decoder says that a value is of another kind: with the
// names of its tag and of our type.
var yamlMismatch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("cannot unmarshal !!(\\w+)( `[^`]*`)? into (\\S+)( \\{.*\\})?")
})

func yamlKind(tag string) string {
	switch tag {
	case "str":
		return "the text"
	case "seq":
		return "a list"
	case "map":
		return "a mapping"
	}
	return "the value"
}

func goKind(name string) string {
	switch name = strings.TrimLeft(name, "*"); {
	case strings.HasPrefix(name, "[]"):
		return "list"
	case name == "string":
		return "text"
	case strings.HasPrefix(name, "int"):
		return "whole number"
	case strings.HasPrefix(name, "float"):
		return "number"
	case name == "bool":
		return "true or false"
	}
	return "mapping"
}
