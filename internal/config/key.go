package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// KeyVariable is the variable that holds the API key.
const KeyVariable = "DEEPSEEK_API_KEY"

// keyCommandTime bounds key_command, which may have to ask a person for a passphrase.
const keyCommandTime = 60 * time.Second

// ErrNoKey is the lack of an API key. Its text is complete: what is missing and
// the three ways on.
var ErrNoKey = errors.New("no API key: set " + KeyVariable + ",\n" +
	"or key_file (or key_command) in the configuration file (`deepseek config path`),\n" +
	"or try it without a key: deepseek run --model demo \"what is here?\"")

// Key finds the API key: the variable, else key_file, else the first line that
// key_command prints. It looks anew at each call, so call it once, and only
// when a key is needed. The key is in none of its errors.
func (c *Config) Key(ctx context.Context) (string, error) {
	if key, _ := lookupEnv(c.environ, KeyVariable); strings.TrimSpace(key) != "" {
		key, err := checkKey(key)
		return key, keyError(Source{Origin: FromEnv, Name: KeyVariable}, "", err)
	}
	if c.KeyFile != "" {
		data, err := readRegular(c.KeyFile, 64<<10)
		if err != nil {
			return "", &Error{Source: c.Source("key_file"), Key: "key_file", Reason: c.KeyFile + ": " + plainReason(err)}
		}
		key, err := checkKey(firstLine(data))
		return key, keyError(c.Source("key_file"), "key_file", err)
	}
	if c.keyCommand != "" {
		key, err := c.runKeyCommand(ctx)
		if ctx.Err() != nil { // the caller's end, such as a signal, and no fault of the setting
			return "", context.Cause(ctx)
		}
		if err != nil {
			return "", &Error{Source: c.Source("key_command"), Key: "key_command", Reason: err.Error()}
		}
		key, err = checkKey(key)
		return key, keyError(c.Source("key_command"), "key_command", err)
	}
	return "", ErrNoKey
}

// runKeyCommand runs in a process group of its own, which is ended with it.
func (c *Config) runKeyCommand(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyCommandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", c.keyCommand)
	cmd.Env = c.environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out := &bounded{left: 64 << 10}
	cmd.Stdout = out // stderr is left out: what it says may hold the key
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", fmt.Errorf("was ended after %v without an answer", keyCommandTime)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("failed: %w; run it by hand to see why", exit)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", err
	}
	return firstLine(out.Bytes()), nil
}

// bounded keeps the first bytes and drops the rest.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}

func firstLine(data []byte) string {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	return string(line)
}

// checkKey refuses what cannot stand in a header, so that a wrong file shows
// here and not as a puzzling refusal of the server.
func checkKey(key string) (string, error) {
	key = strings.TrimSpace(key)
	if key == "" {
		return "", errors.New("no API key: the first line is empty")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] >= 0x7f {
			return "", fmt.Errorf("this is no API key: character %d can be in none", i+1)
		}
	}
	return key, nil
}

// keyError places what checkKey found.
func keyError(source Source, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Source: source, Key: key, Reason: err.Error()}
}
