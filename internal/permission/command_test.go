package permission

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWorkspace(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.ws + "/sub/deep")
	b.mkdir(b.dir + "/user/.git")
	b.mkdir(b.dir + "/user/project")
	b.mkdir(b.dir + "/linked/in")
	b.write(b.dir+"/linked/.git", "gitdir: /nowhere\n")
	b.link(b.ws+"/sub", b.dir+"/way")
	b.mkdir(b.dir + "/trick")
	b.link(b.ws+"/.git", b.dir+"/trick/.git")
	for cwd, want := range map[string]string{
		b.ws:                       b.ws,
		b.ws + "/sub/deep":         b.ws,
		b.dir + "/way":             b.ws,
		b.outside:                  b.outside,
		b.dir + "/user/project":    b.dir + "/user/project",
		b.dir + "/user":            b.dir + "/user",
		b.dir + "/linked/in":       b.dir + "/linked",
		b.dir + "/trick":           b.dir + "/trick",
		b.ws + "/.git":             b.ws,
		b.outside + "/../ws/./sub": b.ws,
	} {
		if got, err := Workspace(cwd, b.dir+"/user"); got != want || err != nil {
			t.Errorf("Workspace(%s) = %s, %v, want %s", cwd, got, err, want)
		}
	}
	for _, cwd := range []string{b.dir + "/missing", b.outside + "/o.txt"} {
		if _, err := Workspace(cwd, ""); err == nil {
			t.Errorf("Workspace(%s): no error", cwd)
		}
	}
}

func TestNewRefusesUnknownWords(t *testing.T) {
	b := newBox(t)
	for _, change := range []func(*Config){
		func(c *Config) { c.Level = "root" },
		func(c *Config) { c.Approve = "always" },
		func(c *Config) { c.Cwd = b.dir + "/missing" },
	} {
		c := b.config()
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestCommand(t *testing.T) {
	tests := []struct {
		name        string
		change      func(*box, *Config)
		unsupported bool
		command     string
		reason      string // part of what is asked; "" = not asked
		sandboxed   bool
	}{
		{name: "workspace-write", sandboxed: true},
		{name: "full access", change: func(_ *box, c *Config) { c.Level = FullAccess }},
		{name: "read-only", change: func(_ *box, c *Config) { c.Level = ReadOnly }, reason: "read-only", sandboxed: true},
		{name: "no kernel support", unsupported: true, reason: "an old kernel"},
		{name: "no kernel support, full access", change: func(_ *box, c *Config) { c.Level = FullAccess }, unsupported: true},
		{name: "home in the workspace", change: func(b *box, c *Config) { c.Home = b.ws + "/.ds" }, reason: "deepseek's own folder", sandboxed: true},
		{name: "workspace in home", change: func(b *box, c *Config) { c.Home = b.dir }, reason: "deepseek's own folder", sandboxed: true},
		{name: "sockets in the workspace", change: func(b *box, c *Config) { c.SocketDir = b.ws + "/s" }, reason: "sockets", sandboxed: true},
		{name: "configuration in the workspace", change: func(b *box, c *Config) { c.ConfigFiles = []string{b.ws + "/c.yaml"} }, reason: "configuration", sandboxed: true},
		{name: "session in the workspace", change: func(b *box, c *Config) { c.SessionPaths = []string{b.ws + "/s.jsonl"} }, reason: "running session", sandboxed: true},
		{name: "linked work tree, commit", change: func(b *box, _ *Config) { b.linkWorktree() }, command: "make && git -C . commit -m x", reason: "linked work tree", sandboxed: true},
		{name: "linked work tree, status", change: func(b *box, _ *Config) { b.linkWorktree() }, command: "git status", sandboxed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBox(t)
			who := &person{say: yes}
			p := b.policy(func(c *Config) {
				c.Approver = who
				if tt.change != nil {
					tt.change(b, c)
				}
			})
			p.supported = func() (bool, string, error) { return !tt.unsupported, "an old kernel", nil }
			if tt.command == "" {
				tt.command = "make all"
			}
			tmp := t.TempDir()
			l, err := p.Command(t.Context(), CommandRequest{CallID: "c1", Command: tt.command, Dir: b.ws, TempDir: tmp})
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Sandbox != nil; got != tt.sandboxed {
				t.Errorf("sandboxed %v, want %v", got, tt.sandboxed)
			}
			if tt.reason == "" {
				if len(who.asked) > 0 {
					t.Errorf("asked %+v", who.asked)
				}
				return
			}
			if len(who.asked) != 1 || !strings.Contains(who.asked[0].Reason, tt.reason) || who.asked[0].Detail != tt.command {
				t.Fatalf("asked %+v", who.asked)
			}
			who.say = no
			var denied *Denied
			if _, err := p.Command(t.Context(), CommandRequest{Command: tt.command, TempDir: tmp}); !errors.As(err, &denied) {
				t.Errorf("after a no: %v", err)
			}
			if _, err := p.For(nil).Command(t.Context(), CommandRequest{Command: tt.command, TempDir: tmp}); !errors.As(err, &denied) {
				t.Errorf("with nobody to ask: %v", err)
			}
		})
	}
}

func TestYesForTheSessionCoversThePrefix(t *testing.T) {
	b := newBox(t)
	who := &person{say: func(Request) Decision { return Decision{Allowed: true, ForSession: true} }}
	p := b.policy(func(c *Config) { c.Approver, c.Level = who, ReadOnly })
	run := func(p *Policy, command string) {
		t.Helper()
		if _, err := p.Command(t.Context(), CommandRequest{Command: command, TempDir: b.outside}); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	run(p, "go test ./...")
	if who.asked[0].Prefix != "go test, with any arguments" {
		t.Errorf("offered %q", who.asked[0].Prefix)
	}
	who.say = no
	run(p, "go test -run 'X|Y' -count=1 ./a")
	run(p.For(nil), "go test")
	for _, command := range []string{"go build", "go test; rm x", "go test $(rm x)", "go test > x", "X=1 go test", "go test &", "! go test", "go", "gotest", "go test -exec ./x", "go test -toolexec=./x", "go test {-exec,./x}", "go test *", "go test '-exec' x", `go test \-exec x`, "go test -o x"} {
		if _, err := p.Command(t.Context(), CommandRequest{Command: command, TempDir: b.outside}); err == nil {
			t.Errorf("%s: not asked", command)
		}
	}
}

func TestOffer(t *testing.T) {
	for command, want := range map[string]string{
		"git status":               "git status, with any arguments",
		"git commit -m 'a b'":      "git commit, with any arguments",
		"python3 -m pytest -k 'a'": "python3 -m pytest, with any arguments",
		"go test ../../other":      "go test ../../other",
		"npm run build":            "npm run build",
		"ls":                       "ls",
		"ls -la":                   "ls -la",
		" rm *.o ":                 "rm *.o",
		"git -C x push":            "git -C x push",
		"python3 x.py":             "python3 x.py",
		"sudo reboot":              "sudo reboot",
		"bash script":              "bash script",
		"./configure all":          "./configure all",
		"cat a | sort":             "",
		"a && b":                   "",
		"a; b":                     "",
		"echo $(date)":             "",
		"echo `date`":              "",
		"echo $HOME":               "",
		`echo "$HOME"`:             "",
		"echo hi > f":              "",
		"A=1 make":                 "",
		"make &":                   "",
		"! make":                   "",
		"(make)":                   "",
		"for i in 1; do x; done":   "",
		"echo 'unfinished":         "",
		"":                         "",
		"cat <(ls)":                "",
		"a\nb":                     "",
		"echo $'x'":                "",
		"f() { rm -rf x; }; f all": "",
	} {
		if got := parse(command).offer("").text; got != want {
			t.Errorf("offer(%q) = %q, want %q", command, got, want)
		}
	}
}

// A yes for the session opens no other program, and no more than was shown.
func TestYesForTheSessionOpensNoOtherProgram(t *testing.T) {
	for shown, others := range map[string][]string{
		"tar xf a.tar":                {"tar xf a.tar --to-command=./x", "tar xf b.tar"},
		"docker run alpine true":      {"docker run -v /:/h alpine sh"},
		"npm exec -- foo":             {"npm exec -- bar"},
		"npm test":                    {"npm test -- --x"},
		"npm install":                 {"npm install other"},
		"npx foo":                     {"npx bar"},
		"uv run x":                    {"uv run y"},
		"make test":                   {"make test CC=./x", "make test install", "make test\r", "\rmake test", "make\rtest", "make test\v", "make test\f", "make test\u00a0"},
		"./build.sh":                  {"./build.sh\r", "./build.sh\r\n", "./build.sh\u0085"},
		"git config user.name x":      {"git config core.pager ./x"},
		"git rebase main":             {"git rebase -x ./x main"},
		"git push origin main":        {"git push --receive-pack=./x origin main", "git push --force other main"},
		"git diff":                    {"git diff --output=x", "git diff --ext-diff", "git diff -O/x"},
		"git log":                     {"git log --oneline\r", "git log --output=x", "git log --outp=x"},
		"git commit -m x":             {"git commit --template=x", "git commit -F x", "git commit --amend", "git -c core.hooksPath=x commit"},
		"git add .":                   {"git add -e", "git add -f x", "git add --pathspec-from-file=x"},
		"cargo test":                  {"cargo test --config x=1", "cargo test --manifest-path ../x", "cargo test --target-dir x", "cargo +x test"},
		"pytest":                      {"pytest -p x", "pytest -c x", "pytest @x", "pytest /tmp/x.py", "pytest ../x.py", "pytest ~/x.py", "pytest --pdbcls=x:y", "pytest -o x=y"},
		"go vet ./...":                {"go vet -vettool=./x", "go vet -vettool ./x", "go vet -C x ./..."},
		"go build ./...":              {"go build -o x ./...", "go build -ldflags -extld=./x", "go build -overlay x", "go build -modfile x", "go build --toolexec ./x"},
		"systemctl stop x":            {"systemctl stop y"},
		"find . -name x":              {"find . -delete"},
		"curl http://127.0.0.1/":      {"curl http://127.0.0.1/ -o x"},
		"kubectl get pods":            {"kubectl get pods --kubeconfig x"},
		"git diff --stat":             {"git diff --no-index --output x a b"},
		"python3 -m pytest -q":        {"python3 -m pytest -q -p x", "python3 -m other"},
		"git show HEAD~2 --name-only": {"git show --textconv"},
	} {
		g := parse(shown).offer("/w")
		if !g.covers(parse(shown), "/w") || g.covers(parse(shown), "/tmp") {
			t.Errorf("%s: the grant %+v does not cover it there and nowhere else", shown, g)
		}
		for _, other := range others {
			if g.covers(parse(other), "/w") {
				t.Errorf("a yes to %q covers %q", shown, other)
			}
		}
	}
}

func TestUseOfGit(t *testing.T) {
	for use, commands := range map[gitUse][]string{
		gitChanges: {
			"git add -A && git commit -m x", "git -c user.name=x commit", "git --no-pager commit", "/usr/bin/git push", "x=$(git stash)", "if true; then git checkout -b x; fi",
			"git branch x", "git branch 'x'", "git branch $x", "git tag v1", "git tag -a v1 -m x", "git stash pop", "git stash push", "git remote update", "git gc; git commit",
			"git branch -f x HEAD", "git notes add -m x", "git apply --index p", "git submodule update", "git config --worktree a.b c",
		},
		gitNeedsClosed: {
			"git gc", "git config user.name x", "git config --unset user.name", "git config set a.b c", "git remote add o x", "git remote remove o", "git branch -d x", "git branch -m a b",
			"git tag -d x", "git stash drop", "git worktree add ../x", "git worktree prune", "git submodule add x", "git pack-refs --all", "git branch -u o/x",
		},
		gitReads: {
			"git status; git diff; git log -5", "git -C commit status", "echo git commit", "grep 'git commit' f", "git", "git branch", "git branch -a", "git branch -vv --sort=-committerdate",
			"git branch --show-current", "git branch --list 'x*'", "git branch --contains HEAD", "git remote", "git remote -v", "git remote show origin", "git remote get-url origin",
			"git stash list", "git stash show -p", "git config user.name", "git config --get user.name", "git config --global user.name", "git config -l", "git config get user.name",
			"git tag", "git tag -l 'v*'", "git tag --list", "git tag -n", "git tag -n5", "git tag --sort=-v:refname", "git worktree list", "git submodule", "git submodule status", "git notes list",
			"git reflog", "git symbolic-ref HEAD", "git hash-object f", "git bisect log",
		},
	} {
		for _, command := range commands {
			if got := parse(command).git; got != use {
				t.Errorf("%q: %d, want %d", command, got, use)
			}
		}
	}
}

// A command that only looks does not ask in a linked work tree, nor does one that
// would fail after a yes as well; that one's result says so.
func TestLinkedWorkTreeAsksOnlyForWhatAYesOpens(t *testing.T) {
	b := newBox(t)
	b.linkWorktree()
	p := b.policy(nil)
	p.supported = func() (bool, string, error) { return true, "", nil }
	for command, says := range map[string]string{"git branch": "needs approval", "git gc": "the user has to run it", "git config a.b c": "the user has to run it"} {
		l, err := p.Command(t.Context(), CommandRequest{Command: command, TempDir: t.TempDir()})
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if note := l.Note("Permission denied"); !strings.Contains(note, says) {
			t.Errorf("%s: %s", command, note)
		}
	}
	if _, err := p.Command(t.Context(), CommandRequest{Command: "git branch x", TempDir: t.TempDir()}); err == nil {
		t.Error("git branch x: not asked")
	}
}

// A submodule, or a work tree with a separate git directory, says where that lies.
func TestGitDirectoryOutsideIsNamed(t *testing.T) {
	b := newBox(t)
	b.remove(b.ws + "/.git")
	gitdir := b.outside + "/.git/modules/ws"
	b.mkdir(gitdir + "/objects")
	b.mkdir(gitdir + "/refs")
	b.write(gitdir+"/HEAD", "ref: refs/heads/main\n")
	b.write(b.ws+"/.git", "gitdir: ../outside/.git/modules/ws\n")
	p := b.policy(nil)
	p.supported = func() (bool, string, error) { return true, "", nil }
	l, err := p.Command(t.Context(), CommandRequest{Command: "git commit -m x", TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if note := l.Note("fatal: Unable to create 'index.lock': Permission denied"); !strings.Contains(note, gitdir+", lies outside") || !strings.Contains(note, "for the user to run") {
		t.Error(note)
	}
}

// npm and cargo may not make the folders that they need in the home.
func TestMissingCachesHaveStandIns(t *testing.T) {
	b := newBox(t)
	p := b.policy(nil)
	p.supported = func() (bool, string, error) { return true, "", nil }
	tmp := t.TempDir()
	env := func() string {
		l, err := p.Command(t.Context(), CommandRequest{Command: "npm install", TempDir: tmp})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(l.Env, " ")
	}
	if got, want := env(), "npm_config_cache="+tmp+"/npm-cache CARGO_HOME="+tmp+"/cargo-cache"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b.mkdir(b.dir + "/user/.npm")
	b.mkdir(b.dir + "/user/.cargo")
	p = b.policy(nil)
	p.supported = func() (bool, string, error) { return true, "", nil }
	if got := env(); got != "" {
		t.Errorf("with folders of their own: %s", got)
	}
	p = b.policy(func(c *Config) { c.SandboxWritable = []string{} })
	p.supported = func() (bool, string, error) { return true, "", nil }
	if got := env(); got != "npm_config_cache="+tmp+"/npm-cache" {
		t.Errorf("with closed folders: %s", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("git status | cat && $(x) <(y) 'z' \"${a:=b}\"")
	f.Add("case x in a) ;; esac; ((1+2)); [[ a =~ b ]]; cat <<E\nx\nE")
	f.Fuzz(func(t *testing.T, command string) {
		line := parse(command)
		if g := line.offer(""); g.text != "" && !g.covers(line, "") {
			t.Errorf("%q is not covered by its own offer %+v", command, g)
		}
	})
}

// sandboxed runs a command the way that the policy says and returns what it printed.
func (b *box) sandboxed(p *Policy, command string) (string, error) {
	b.t.Helper()
	if ok, why := Supported(); !ok {
		b.t.Skip(why)
	}
	tmp := b.dir + "/tmp"
	b.mkdir(tmp)
	l, err := p.Command(b.t.Context(), CommandRequest{Command: command, TempDir: tmp})
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.CommandContext(b.t.Context(), "/bin/bash", "-c", command)
	cmd.Dir, cmd.Env = b.ws, append(os.Environ(), "TMPDIR="+tmp)
	out, err := output(l.Sandbox, cmd)
	if err != nil && l.Note(string(out)) == "" && strings.Contains(string(out), "denied") {
		b.t.Error("no note about the sandbox")
	}
	return string(out), err
}

// output is cmd.CombinedOutput, in a sandbox.
func output(s *Sandbox, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := s.Start(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
}

func TestSandbox(t *testing.T) {
	tests := []struct {
		command string
		ok      bool
	}{
		{"echo x > new.txt && mkdir d && mv new.txt d/y && ln d/y z && ln -s z s && rm -r d", true},
		{"echo x > $TMPDIR/t && mv $TMPDIR/t moved", true},
		{"echo x > /dev/null && echo y > /dev/stderr && echo z > /dev/stdout && echo f | tee /dev/stderr", true},
		{"cat <<< here && cat <(echo sub)", true},
		{"cat ../outside/o.txt && ls ..", true},
		{"mkfifo p && (echo x > p & cat p)", true},
		{"echo x > ../user/.cache/c && echo x > ../user/go/pkg/mod/m", true},
		{"if [ -d /dev/shm ]; then f=$(mktemp -p /dev/shm) && rm $f; fi", true},
		{"echo x > ../outside/new", false},
		{"echo x >> ../outside/o.txt", false},
		{"rm ../outside/o.txt", false},
		{"truncate -s 0 ../outside/o.txt", false},
		{"mv sub/old.txt ../outside/", false},
		{"mv ../outside/o.txt .", false},
		{"ln ../outside/o.txt hard && echo x > hard", false},
		{"ln -s ../outside/o.txt soft && echo x > soft", false},
		{"mkdir ../outside/d", false},
		{"mv ../ws ../ws2", false},
		{"echo x > ../user/f", false},
		{"echo x > ../home/sessions/f", false},
		{"setsid -w bash -c 'echo x > ../outside/new'", false},
		{"(mknod dev b 8 0 || mknod dev c 1 3)", false},
	}
	for _, tt := range tests {
		t.Run(tt.command, func(t *testing.T) {
			b := newBox(t)
			out, err := b.sandboxed(b.policy(nil), tt.command)
			if (err == nil) != tt.ok {
				t.Errorf("%v: %s", err, out)
			}
			if got, err := os.ReadFile(b.outside + "/o.txt"); string(got) != "o\n" {
				t.Errorf("outside changed: %q, %v", got, err)
			}
		})
	}
}

func TestSandboxLetsALinkedWorkTreeCommitAfterAYes(t *testing.T) {
	b := newBox(t)
	gitdir := b.linkWorktree()
	p := b.policy(func(c *Config) { c.Approver = &person{say: yes} })
	if out, err := b.sandboxed(p, "echo x > "+gitdir+"/index; git commit --help >/dev/null 2>&1; test -s "+gitdir+"/index"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := b.sandboxed(p, "echo x > "+gitdir+"/index.lock"); err == nil {
		t.Errorf("written without a yes: %s", out)
	}
}

func TestSandboxPassesOnNoOpenFile(t *testing.T) {
	if ok, why := Supported(); !ok {
		t.Skip(why)
	}
	b := newBox(t)
	f, err := os.OpenFile(b.outside+"/o.txt", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()                                                   //nolint:errcheck // nothing was written
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil { // as this process's parent could have left it
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", fmt.Sprintf("echo x >&%d", f.Fd()))
	if out, err := output(&Sandbox{Writable: []string{b.ws}}, cmd); err == nil {
		t.Errorf("written through the open file: %s", out)
	}
}

func TestSandboxWritableReplacesTheCaches(t *testing.T) {
	b := newBox(t)
	b.mkdir(b.dir + "/extra")
	p := b.policy(func(c *Config) {
		c.SandboxWritable = []string{b.dir + "/extra", b.dir + "/missing", b.home, "relative"}
	})
	if out, err := b.sandboxed(p, "echo x > ../extra/f"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := b.sandboxed(p, "echo x > "+b.home+"/f"); err == nil {
		t.Errorf("the configuration opened the home: %s", out)
	}
	if _, err := os.Stat(b.dir + "/user/.cache"); err == nil {
		t.Error("a cache was made")
	}
}

func TestCachesAreMadePrivateAndOnlyForCommands(t *testing.T) {
	b := newBox(t)
	p := b.policy(nil)
	if _, err := os.Stat(b.dir + "/user/.cache"); err == nil {
		t.Error("made before the first command")
	}
	if _, err := b.sandboxed(p, "true"); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{".cache", "go/pkg/mod"} {
		fi, err := os.Stat(filepath.Join(b.dir, "user", dir))
		if err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, fi, err)
		}
	}
	if _, err := os.Stat(b.dir + "/user/.npm"); err == nil {
		t.Error(".npm was made")
	}
}

// The program itself stays free, whichever thread it goes on with.
func TestSandboxHoldsTheCommandAlone(t *testing.T) {
	if ok, why := Supported(); !ok {
		t.Skip(why)
	}
	b := newBox(t)
	for range 20 {
		if out, err := output(&Sandbox{}, exec.CommandContext(t.Context(), "/bin/bash", "-c", "echo x > "+b.outside+"/f")); err == nil {
			t.Fatalf("written: %s", out)
		}
		var free sync.WaitGroup
		for i := range 16 {
			free.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				if err := os.WriteFile(fmt.Sprintf("%s/free%d", b.outside, i), nil, 0o644); err != nil {
					t.Error(err)
				}
			})
		}
		free.Wait()
	}
}

func TestNote(t *testing.T) {
	b := newBox(t)
	gitdir := b.linkWorktree()
	p := b.policy(nil)
	p.supported = func() (bool, string, error) { return true, "", nil }
	l, err := p.Command(t.Context(), CommandRequest{Command: "make", TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if note := l.Note("fatal: Unable to create 'index.lock': Permission denied"); !strings.Contains(note, gitdir) || !strings.Contains(note, b.ws) {
		t.Errorf("note %q", note)
	}
	if note := l.Note("1 test failed"); note != "" {
		t.Errorf("note %q", note)
	}
}

// TestWhatACommandMayWriteToIsWhatWasShown: folders are looked at again when a person
// has said yes, since they can have been put elsewhere meanwhile.
func TestWhatACommandMayWriteToIsWhatWasShown(t *testing.T) {
	if ok, why := Supported(); !ok {
		t.Skip(why)
	}
	swap := func(b *box, dir string) {
		if err := os.Rename(dir, dir+".old"); err != nil {
			b.t.Fatal(err)
		}
		b.link(b.home, dir)
	}
	for name, c := range map[string]struct {
		level   Level
		linked  bool
		command string
		during  func(b *box)
		denied  bool
	}{
		"nothing changes":             {ReadOnly, false, "true", func(*box) {}, false},
		"the workspace":               {ReadOnly, false, "true", func(b *box) { swap(b, b.ws) }, true},
		"git, nothing changes":        {WorkspaceWrite, true, "git commit -m x", func(*box) {}, false},
		"git's objects":               {WorkspaceWrite, true, "git commit -m x", func(b *box) { swap(b, b.outside+"/.git/objects") }, true},
		"a file in the home, linked":  {ReadOnly, false, "true", func(b *box) { b.write(b.home+"/config.yaml", "x"); b.hardLink(b.home+"/config.yaml", b.ws+"/c") }, true},
		"something else in the place": {ReadOnly, false, "true", func(b *box) { b.write(b.ws+"/new", "x") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			if c.linked {
				b.linkWorktree()
			}
			b.mkdir(b.dir + "/tmp")
			who := &person{say: func(Request) Decision { c.during(b); return Decision{Allowed: true} }}
			p := b.policy(func(cfg *Config) { cfg.Level, cfg.Approver = c.level, who })
			_, err := p.Command(t.Context(), CommandRequest{Command: c.command, TempDir: b.dir + "/tmp"})
			var denied *Denied
			if errors.As(err, &denied) != c.denied || !c.denied && err != nil || len(who.asked) != 1 {
				t.Errorf("asked %d times: %v", len(who.asked), err)
			}
			if denied != nil && !strings.Contains(denied.Message, "were changed while approval was waited for") {
				t.Error(denied)
			}
		})
	}
}
