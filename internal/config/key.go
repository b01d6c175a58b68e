package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// KeyVariable is the variable that holds the API key.
const KeyVariable = "DEEPSEEK_API_KEY"

// keyCommandTime bounds key_command, which may have to ask a person for a passphrase.
const keyCommandTime = 60 * time.Second

// keyGrace is how long key_command may go on behind its first line.
const keyGrace = time.Second

// maxKey bounds what is read of a key, in bytes.
const maxKey = 64 << 10

// ErrNoKey is the lack of an API key. Its text is complete: what is missing and
// the three ways on.
var ErrNoKey = errors.New("no API key: set " + KeyVariable + ",\n" +
	"or key_file (or key_command) in the configuration file (`deepseek config path`),\n" +
	"or try it without a key: deepseek run --model demo \"what is here?\"")

// Key finds the API key: the variable, else key_file, else the first line that
// key_command prints. It looks anew at each call, so call it once, and only
// when a key is needed. The key is in none of its errors.
func (c *Config) Key(ctx context.Context) (string, error) {
	if key := c.variable(); key != "" {
		key, err := checkKey(key)
		return key, keyError(Source{Origin: FromEnv, Name: KeyVariable}, "", err)
	}
	if c.KeyFile != "" {
		key, err := c.fromFile()
		if err != nil {
			return "", &Error{Source: c.Source("key_file"), Key: "key_file", Reason: c.KeyFile + ": " + plainReason(err)}
		}
		key, err = checkKey(key)
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

// Known is the key as far as looking tells it, "" where it does not: the
// variable, else what key_file holds, fit for a key or not. key_command is not
// run. It is for keeping the key out of what is shown, and reads the file anew.
func (c *Config) Known() string {
	if key := c.variable(); key != "" || c.KeyFile == "" {
		return key
	}
	key, err := c.fromFile()
	if err != nil {
		return "" // Key says so, to who needs it
	}
	return key
}

func (c *Config) variable() string {
	key, _ := lookupEnv(c.environ, KeyVariable)
	return strings.TrimSpace(key)
}

func (c *Config) fromFile() (string, error) {
	data, err := readRegular(c.KeyFile, maxKey)
	return strings.TrimSpace(firstLine(data)), err
}

// errLong ends a command that prints too much.
var errLong = fmt.Errorf("printed more than %d bytes without a line end: that is no key", maxKey)

// runKeyCommand runs in a process group of its own, which is ended with it. It
// reads the first line and no more: a command that has printed it has keyGrace
// to end, so that one that fails is not believed, and is ended then. One whose
// first line is too long is ended at once.
func (c *Config) runKeyCommand(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyCommandTime)
	defer cancel()
	running, end := context.WithCancel(ctx)
	defer end()
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // read only
	cmd := exec.CommandContext(running, "sh", "-c", c.keyCommand)
	cmd.Env = c.environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Stdout = w // stderr is left out: what it says may hold the key
	err = cmd.Start()
	_ = w.Close() // the command has its own
	if err != nil {
		return "", err
	}
	exited := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		// A child that was left behind may hold the pipe: what the command wrote is in it by now.
		_ = r.SetReadDeadline(time.Now().Add(keyGrace)) // fails where the reader has closed it
		exited <- err
	}()

	line, err := readLine(r)
	if err != nil {
		end()
	}
	grace := time.AfterFunc(keyGrace, end)
	defer grace.Stop()
	failed := <-exited
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("was ended after %v without an answer", keyCommandTime)
	case err != nil:
		return "", err
	case running.Err() != nil && !(errors.As(failed, &exit) && exit.Exited()): // ended here, behind its line, and not before
	case errors.As(failed, &exit):
		return "", fmt.Errorf("failed: %w; run it by hand to see why", exit)
	case failed != nil:
		return "", failed
	}
	return line, nil
}

// readLine reads up to the first line end, the end, or the deadline, whichever
// is first.
func readLine(r io.Reader) (string, error) {
	var line []byte
	buf := make([]byte, 4<<10)
	for {
		n, err := r.Read(buf)
		before, _, whole := bytes.Cut(buf[:n], []byte("\n"))
		line = append(line, before...)
		switch {
		case len(line) > maxKey:
			return "", errLong
		case whole, errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
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
