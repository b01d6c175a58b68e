package permission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Config is what a Policy is made of. Paths are absolute.
type Config struct {
	Level   Level
	Approve string // ApproveAsk or ApproveNever
	Cwd     string // the run's directory

	// Places that tools never write to.
	Home         string   // $DEEPSEEK_HOME
	SocketDir    string   // where control sockets lie
	SessionPaths []string // of the running session; a .jsonl stands for all that lies beside it under the same id
	KeyFile      string   // "" = none; tools do not read it either
	ConfigFiles  []string // the user's configuration; tools do not read it either

	// SandboxWritable are the folders outside the workspace in which commands
	// may write; nil stands for the usual caches.
	SandboxWritable []string

	Approver Approver                 // nil = nobody can be asked
	Getenv   func(name string) string // HOME and the places of caches; nil = os.Getenv
}

// Policy answers what tools may touch. It is immutable but for its level, grants
// and caches, which have locks of their own; it is safe for concurrent use.
type Policy struct {
	level     *levelCell
	approve   string
	approver  Approver
	workspace string     // links resolved
	userHome  string     // $HOME
	git       *linkedGit // nil: the workspace is no linked work tree
	gitAway   string     // where it is none either, but has its git directory outside
	getenv    func(string) string
	guards    []guard
	caches    *caches // besides the workspace
	grants    *grants
	supported func() (bool, string, error)
}

// New makes a Policy. It fails where Cwd is no folder or a level is unknown.
func New(c Config) (*Policy, error) {
	if err := CheckLevel(c.Level); err != nil {
		return nil, err
	}
	switch c.Approve {
	case ApproveAsk, ApproveNever:
	default:
		return nil, fmt.Errorf("approve %q: want %s or %s", c.Approve, ApproveAsk, ApproveNever)
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	home := c.Getenv("HOME")
	ws, err := Workspace(c.Cwd, home)
	if err != nil {
		return nil, err
	}
	p := &Policy{
		level:     &levelCell{level: c.Level},
		approve:   c.Approve,
		approver:  c.Approver,
		workspace: ws,
		userHome:  home,
		git:       linkedTo(ws),
		getenv:    c.Getenv,
		guards:    makeGuards(c),
		caches:    newCaches(c.SandboxWritable, home, c.Getenv),
		grants:    &grants{},
		supported: kernelSupport,
	}
	if p.git == nil {
		p.gitAway = gitOutside(ws)
	}
	return p, nil
}

// For is the same policy with another way to ask, for a sub-agent. What is
// granted to one, and a change of the level, counts for both.
func (p *Policy) For(a Approver) *Policy {
	other := *p
	other.approver = a
	return &other
}

// Level is what the session may do without asking.
func (p *Policy) Level() Level { return p.level.get() }

// Workspace is the folder in which files may be changed, links resolved.
func (p *Policy) Workspace() string { return p.workspace }

// Ask puts a request to a person: nil is a yes, a *Denied everything else,
// save that the end of ctx is ctx's error.
func (p *Policy) Ask(ctx context.Context, r Request) error {
	_, err := p.ask(ctx, r)
	return err
}

func (p *Policy) ask(ctx context.Context, r Request) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if p.approve == ApproveNever {
		return Decision{}, &Denied{Asked: true, Message: fmt.Sprintf("%s. This needs approval, and approvals are denied here (--approve never). Do what needs none, or tell the user what is missing.", r.Reason)}
	}
	if p.approver == nil {
		return Decision{}, &Denied{Asked: true, Message: fmt.Sprintf("%s. This needs approval, and nobody could be asked. Do what needs none, or tell the user what is missing.", r.Reason)}
	}
	d := p.approver.Approve(ctx, r)
	if d.Allowed {
		return d, nil
	}
	if err := ctx.Err(); err != nil {
		return d, err
	}
	if d.Message == "" {
		d.Message = "The user did not allow this."
	}
	return d, &Denied{Message: d.Message, Asked: true}
}

// Server decides on a call of a tool that another program runs, and waits for a
// person unless the user's configuration trusts that program. Nothing is known
// of what such a call does, so a read-only session has none. The error is a
// *Denied or that of ctx.
func (p *Policy) Server(ctx context.Context, r Request, trusted bool) error {
	switch {
	case p.Level() == ReadOnly:
		return &Denied{Message: r.Tool + " was not called: this session is read-only, and tools of MCP servers could change something. Tell the user what you would call."}
	case trusted:
		return ctx.Err()
	}
	return p.Ask(ctx, r)
}

// Workspace is the git work tree that holds cwd, else cwd; cwd where that would
// be home or the root. Links are resolved. No program is run for it.
func Workspace(cwd, home string) (string, error) {
	cwd, err := filepath.Abs(cwd)
	if err == nil {
		cwd, err = filepath.EvalSymlinks(cwd)
	}
	if err != nil {
		return "", err
	}
	if fi, err := os.Stat(cwd); err != nil {
		return "", err
	} else if !fi.IsDir() {
		return "", &os.PathError{Op: "open", Path: cwd, Err: errors.New("not a directory")}
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if fi, err := os.Lstat(filepath.Join(dir, ".git")); err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
			if dir == "/" || sameDir(dir, home) {
				return cwd, nil
			}
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return cwd, nil
		}
	}
}

func sameDir(a, b string) bool {
	if b == "" {
		return false
	}
	fa, erra := os.Stat(a)
	fb, errb := os.Stat(b)
	return erra == nil && errb == nil && os.SameFile(fa, fb)
}
