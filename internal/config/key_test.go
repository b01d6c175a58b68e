package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestKey(t *testing.T) {
	for _, c := range []struct{ name, user, file, env, want, err string }{
		{name: "variable first", user: "key_file: k\n", file: "from-file\n", env: " from-env\n", want: "from-env"},
		{name: "file, first line", user: "key_file: k\nkey_command: echo from-command\n", file: "from-file\nrest\n", want: "from-file"},
		{name: "command, first line", user: "key_command: echo from-command; echo more\n", want: "from-command"},
		{name: "none", err: "DEEPSEEK_API_KEY"},
		{name: "file is missing", user: "key_file: k\n", err: "no such file"},
		{name: "file is empty", user: "key_file: k\n", file: "\n", err: "is empty"},
		{name: "command fails", user: "key_command: echo sk-1 >&2; exit 3\n", err: "exit status 3"},
		{name: "what no header can hold", env: "sk-1 2", err: "character 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.user, "")
			if c.file != "" {
				write(t, filepath.Join(p.home, "k"), c.file)
			}
			cfg, err := p.load(nil, "DEEPSEEK_API_KEY="+c.env, "PATH="+os.Getenv("PATH"))
			if err != nil {
				t.Fatal(err)
			}
			key, err := cfg.Key(t.Context())
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "sk-1") {
					t.Errorf("got %q, %v; want %s", key, err, c.err)
				}
			} else if err != nil || key != c.want {
				t.Errorf("got %q, %v; want %q", key, err, c.want)
			}
		})
	}
}

func TestTheKnownKeyIsFoundByLookingAlone(t *testing.T) {
	for _, c := range []struct{ name, user, file, env, want string }{
		{name: "variable first", user: "key_file: k\n", file: "from-file\n", env: " from-env\n", want: "from-env"},
		{name: "file, first line", user: "key_file: k\n", file: " from-file \nrest\n", want: "from-file"},
		{name: "file is missing", user: "key_file: k\n"},
		{name: "a command is not run", user: "key_command: touch ran; echo from-command\n"},
		{name: "what no header can hold", env: "sk-1 2", want: "sk-1 2"},
		{name: "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, c.user, "")
			if c.file != "" {
				write(t, filepath.Join(p.home, "k"), c.file)
			}
			t.Chdir(t.TempDir())
			cfg, err := p.load(nil, "DEEPSEEK_API_KEY="+c.env, "PATH="+os.Getenv("PATH"))
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Known(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if _, err := os.Stat("ran"); err == nil {
				t.Error("the command was run")
			}
		})
	}
}

func TestNoKeyNamesTheWaysOn(t *testing.T) {
	for _, want := range []string{"DEEPSEEK_API_KEY", "key_file", "--model demo"} {
		if !strings.Contains(ErrNoKey.Error(), want) {
			t.Errorf("%s is not named", want)
		}
	}
}

func TestCancelEndsTheKeyCommandAndItsChildren(t *testing.T) {
	p := newPlace(t, "key_command: \"echo $$ > $DIR/pid.new; mv $DIR/pid.new $DIR/pid; sleep 300; echo late\"\n", "")
	dir := t.TempDir()
	cfg, err := p.load(nil, "PATH="+os.Getenv("PATH"), "DIR="+dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	begin := time.Now()
	if _, err := cfg.Key(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("took %v", took)
	}
	cancel()
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); syscall.Kill(-group, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) { // killed, but init has not reaped it
			t.Fatalf("process group %d is still there", group)
		}
	}
}

func TestKeyFileThatIsAPipeDoesNotHang(t *testing.T) {
	p := newPlace(t, "key_file: /dev/stdin\nkey_command: echo x\n", "")
	cfg, err := p.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.KeyFile = "/dev/zero"
	if _, err := cfg.Key(t.Context()); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("got %v", err)
	}
}

// What a command prints behind its first line is neither read nor waited for,
// and an endless line costs no more memory than the limit.
func TestAKeyCommandThatGoesOnIsEnded(t *testing.T) {
	for _, c := range []struct{ name, command, want, err string }{
		{name: "lines without end", command: "yes sk-huge-key-1234", want: "sk-huge-key-1234"},
		{name: "a line without end", command: "yes | tr -d '\\n'", err: "more than 65536 bytes"},
		{name: "a line of the limit and one byte", command: "yes | tr -d '\\n' | head -c 65537", err: "more than 65536 bytes"},
		{name: "it sleeps behind its line", command: "echo sk-1; sleep 300", want: "sk-1"},
		{name: "a child keeps the pipe", command: "sleep 300 & printf sk-1", want: "sk-1"},
		{name: "empty lines without end", command: "yes ''", err: "is empty"},
		{name: "it fails behind its line", command: "echo sk-1; exit 4", err: "exit status 4"},
		{name: "it closes its output and fails", command: "exec >&-; exit 5", err: "exit status 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, "", "")
			write(t, p.user, "key_command: \""+c.command+"\"\n")
			cfg, err := p.load(nil, "PATH="+os.Getenv("PATH"))
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			key, err := cfg.Key(t.Context())
			if key != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v; want %q, %s", key, err, c.want, c.err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

// This process may stand still while the command fails behind its line, for longer
// than the command has. It has failed all the same.
func TestAKeyCommandThatFailedIsNotBelievedHoweverLateThatIsSeen(t *testing.T) {
	p := newPlace(t, "key_command: \"(sleep 1.5; kill -CONT $PPID) >/dev/null & echo sk-1; sleep 0.05; kill -STOP $PPID; exit 4\"\n", "")
	cfg, err := p.load(nil, "PATH="+os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	if key, err := cfg.Key(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("got %q, %v", key, err)
	}
}

func TestACancelEndsAKeyCommandThatPrintsWithoutEnd(t *testing.T) {
	p := newPlace(t, "key_command: yes sk-1\n", "")
	cfg, err := p.load(nil, "PATH="+os.Getenv("PATH"))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := cfg.Key(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
