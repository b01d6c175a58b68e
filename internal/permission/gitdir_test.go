package permission

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// linkWorktree makes ws a linked work tree of a repository outside.
func (b *box) linkWorktree() string {
	b.t.Helper()
	gitdir := b.outside + "/.git/worktrees/ws"
	b.mkdir(gitdir)
	if err := os.RemoveAll(b.ws + "/.git"); err != nil {
		b.t.Fatal(err)
	}
	b.write(b.ws+"/.git", "gitdir: "+gitdir+"\n")
	b.write(gitdir+"/gitdir", b.ws+"/.git\n")
	b.write(gitdir+"/commondir", "../..\n")
	b.write(gitdir+"/HEAD", "ref: refs/heads/ws\n")
	b.write(b.outside+"/.git/HEAD", "ref: refs/heads/main\n")
	b.mkdir(b.outside + "/.git/objects")
	b.mkdir(b.outside + "/.git/refs")
	b.mkdir(b.outside + "/.git/hooks")
	return gitdir
}

func TestLinkedWorkTreeOpensWhatGitNeeds(t *testing.T) {
	b := newBox(t)
	gitdir := b.linkWorktree()
	common := b.outside + "/.git"
	want := []string{gitdir, common + "/objects", common + "/refs", common + "/logs"}
	p := b.policy(nil)
	if got := p.gitPlaces(p.look()); !slices.Equal(got, want) {
		t.Errorf("places %v, want %v", got, want)
	}
}

// Whoever may write in the workspace can make its .git say anything.
func TestForgedLinkedWorkTreeOpensNothing(t *testing.T) {
	tests := map[string]func(b *box, gitdir string, c *Config){
		"record points elsewhere": func(b *box, gitdir string, _ *Config) { b.write(gitdir+"/gitdir", b.outside+"/.git\n") },
		"no record":               func(b *box, gitdir string, _ *Config) { b.remove(gitdir + "/gitdir") },
		"no commondir":            func(b *box, gitdir string, _ *Config) { b.remove(gitdir + "/commondir") },
		"common is elsewhere": func(b *box, gitdir string, _ *Config) {
			b.mkdir(b.dir + "/other/objects")
			b.mkdir(b.dir + "/other/refs")
			b.write(b.dir+"/other/HEAD", "ref: refs/heads/main\n")
			b.write(gitdir+"/commondir", b.dir+"/other\n")
		},
		"common is no repository":      func(b *box, _ string, _ *Config) { b.remove(b.outside + "/.git/objects") },
		"common has no HEAD":           func(b *box, _ string, _ *Config) { b.remove(b.outside + "/.git/HEAD") },
		"own has no HEAD":              func(b *box, gitdir string, _ *Config) { b.remove(gitdir + "/HEAD") },
		"home of the product is in it": func(b *box, _ string, c *Config) { c.Home = b.outside + "/.git/objects/ds" },
		"home of the product is it":    func(b *box, _ string, c *Config) { c.Home = b.outside },
		"key lies in it":               func(b *box, gitdir string, c *Config) { c.KeyFile = gitdir + "/key" },
		"session lies in it":           func(b *box, gitdir string, c *Config) { c.SessionPaths = []string{gitdir + "/s.jsonl"} },
		"the user's home lies in it": func(b *box, gitdir string, c *Config) {
			c.Getenv, c.SandboxWritable = func(string) string { return gitdir }, []string{}
		},
		"a hard link of another's .git": func(b *box, gitdir string, _ *Config) {
			b.mkdir(b.dir + "/elsewhere")
			if err := os.Link(b.ws+"/.git", b.dir+"/elsewhere/.git"); err != nil {
				b.t.Fatal(err)
			}
			b.write(gitdir+"/gitdir", b.dir+"/elsewhere/.git\n")
		},
		"planted, for the product's home": func(b *box, _ string, _ *Config) { b.plant(b.home) },
		"planted, for the user's home":    func(b *box, _ string, _ *Config) { b.plant(b.dir + "/user") },
		"planted, for a repository":       func(b *box, _ string, _ *Config) { b.plant(b.outside + "/.git") },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			gitdir := b.linkWorktree()
			who := &person{say: yes}
			p := b.policy(func(c *Config) { c.Approver = who; change(b, gitdir, c) })
			p.supported = func() (bool, string, error) { return true, "", nil }
			l, err := p.Command(t.Context(), CommandRequest{Command: "git commit -m x", TempDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range l.Sandbox.Writable {
				if within(dir, b.outside) || within(dir, b.home) || dir == b.dir+"/user" {
					t.Errorf("opened %s", dir)
				}
			}
			if len(who.asked) > 0 {
				t.Errorf("asked %+v", who.asked)
			}
		})
	}
}

func (b *box) remove(path string) {
	b.t.Helper()
	if err := os.RemoveAll(path); err != nil {
		b.t.Fatal(err)
	}
}

// plant makes the workspace a linked one with a git directory inside itself that
// names the folder as the common one.
func (b *box) plant(common string) {
	b.mkdir(b.ws + "/fake")
	b.write(b.ws+"/fake/HEAD", "ref: refs/heads/main\n")
	b.write(b.ws+"/fake/commondir", common+"\n")
	b.write(b.ws+"/fake/gitdir", b.ws+"/.git\n")
	b.write(b.ws+"/.git", "gitdir: "+b.ws+"/fake\n")
}

// Git itself, in a work tree of its own making.
func TestGitWorksInALinkedWorkTreeAfterAYes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	for _, kind := range []string{"init", "init --bare"} {
		b := newBox(t)
		b.remove(b.ws)
		b.remove(b.outside)
		b.mkdir(b.outside)
		t.Setenv("HOME", b.dir+"/user")
		t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
		b.write(b.dir+"/user/.gitconfig", "[user]\nname = n\nemail = n@example.com\n[init]\ndefaultBranch = main\n")
		setup := exec.CommandContext(t.Context(), "/bin/sh", "-ec", "git "+kind+` -q .
t=$(git commit-tree -m first $(git mktree </dev/null)); git update-ref refs/heads/main $t; git tag v0; git worktree add -q -b ws ../ws main; git pack-refs --all`)
		setup.Dir = b.outside
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p := b.policy(func(c *Config) { c.Approver = &person{say: yes} })
		out, err := b.sandboxed(p, `set -e
echo x >f; git add f; git commit -qm second; git tag v1; git branch other; git checkout -qb more; echo y >f; git stash -q; git stash apply -q
git commit -qam third; git checkout -q ws; git merge -q more; git log --oneline`)
		if err != nil || strings.Count(out, "\n") != 3 || strings.Contains(out, "denied") {
			t.Errorf("%s, %s: %v: %s", git, kind, err, out)
		}
		for _, command := range []string{"git config core.pager evil", "git commit --amend -m x; echo evil >$(git rev-parse --git-common-dir)/hooks/post-commit", "git tag x; echo evil >>$(git rev-parse --git-common-dir)/config"} {
			if out, err := b.sandboxed(p, command); err == nil {
				t.Errorf("%s: %s", command, out)
			}
		}
	}
}
