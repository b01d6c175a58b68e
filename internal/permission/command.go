package permission

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// CommandRequest is a command line that wants to run.
type CommandRequest struct {
	CallID  string
	Command string // for bash
	Dir     string // where it runs
	TempDir string // its private folder for temporary files; it exists
}

// Launch says how a command may run.
type Launch struct {
	Sandbox *Sandbox // nil: nothing holds it back
	Env     []string // what its environment is to say in place of the user's
	note    string   // what a refused command's result is to say
}

// Command decides on a command and waits for a person where it must. The error
// is a *Denied, that of ctx, or one of a system that is short of something. What a person allows still runs in the sandbox
// wherever there is one: a yes opens what was asked for and nothing else.
func (p *Policy) Command(ctx context.Context, r CommandRequest) (Launch, error) {
	if p.Level() == FullAccess {
		return Launch{}, nil
	}
	line := parse(r.Command)
	supported, why, err := p.supported()
	if err != nil {
		return Launch{}, err // no yes may stand in for a sandbox that there is
	}
	l := p.look()
	var git []string
	if line.git == gitChanges {
		git = p.gitPlaces(l)
	}
	if reason := p.reason(l, r, supported, why, git); reason != "" && !p.grants.cover(line, r.Dir) {
		exposed := p.exposed(l, r)
		if err := p.askCommand(ctx, r, line, reason); err != nil {
			return Launch{}, err
		}
		// A person takes time: what was shown must be what the command may write to.
		l = p.look()
		if p.exposed(l, r) != exposed || len(git) > 0 && !slices.Equal(p.gitPlaces(l), git) {
			return Launch{}, &Denied{Message: "The command was not run: the folders that it may write to were changed while approval was waited for. Look at them, and try again."}
		}
	}
	if !supported {
		return Launch{}, nil
	}
	writable := []string{p.workspace, r.TempDir}
	for _, dir := range append([]string{"/dev/shm"}, p.caches.dirs()...) {
		if _, ok := l.overlap(dir); !ok {
			writable = append(writable, dir)
		}
	}
	p.makeReadyForGit(git)
	writable = append(writable, git...)
	return Launch{
		Sandbox: &Sandbox{Writable: outermost(writable)},
		Env:     p.standIns(writable, r.TempDir),
		note:    p.note(l, writable[2:], line.git, len(git) > 0),
	}, nil
}

// outermost leaves out what lies in another of these folders. It is writable all
// the same, and a command that put a link in its place would choose what else is.
func outermost(dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return slices.ContainsFunc(dirs, func(other string) bool { return other != dir && within(dir, other) })
	})
}

// reason says why a command needs a yes, "" where it needs none.
func (p *Policy) reason(l *look, r CommandRequest, supported bool, why string, git []string) string {
	reason := p.firstReason(l, r, supported, why)
	if len(git) == 0 || !supported {
		return reason
	}
	opens := "with a yes the command may write to " + strings.Join(git, ", ")
	if reason == "" {
		return "The repository of this linked work tree lies outside the workspace; " + opens
	}
	return reason + "; " + opens
}

func (p *Policy) firstReason(l *look, r CommandRequest, supported bool, why string) string {
	exposed := p.exposed(l, r)
	switch {
	case p.Level() == ReadOnly:
		reason := "This session is read-only, and a command could change files"
		if exposed != "" {
			reason += "; " + exposed
		}
		return reason
	case !supported:
		return "Commands cannot be held to the workspace here (" + why + ")"
	}
	return exposed
}

// exposed says what a command could change that tools never write to, "" where
// there is no such thing.
func (p *Policy) exposed(l *look, r CommandRequest) string {
	if now, err := resolve(p.workspace); err != nil || now.abs != p.workspace {
		return p.workspace + " is not the folder any more that it was, and leads elsewhere"
	}
	for _, dir := range []string{p.workspace, r.TempDir} {
		if g, ok := l.overlap(dir); ok {
			return fmt.Sprintf("%s overlaps with %s (%s), which a command could then change", dir, g.path, g.what)
		}
	}
	if path, g, ok := p.otherNames(); ok {
		return fmt.Sprintf("%s (%s) is a file with more than one name; a command could change it through another one", path, g.what)
	}
	return ""
}

func (p *Policy) askCommand(ctx context.Context, r CommandRequest, line commandLine, reason string) error {
	title := "run a command"
	if r.Dir != "" && r.Dir != p.workspace {
		title += " in " + r.Dir
	}
	offer := line.offer(r.Dir)
	d, err := p.ask(ctx, Request{
		Tool: "bash", CallID: r.CallID, Title: title, Detail: r.Command, Prefix: offer.text, Reason: reason,
	})
	if err == nil && d.ForSession && offer.text != "" {
		p.grants.add(offer)
	}
	return err
}

func (p *Policy) note(l *look, others []string, use gitUse, opened bool) string {
	note := fmt.Sprintf("note: commands may change files only in %s, $TMPDIR, %s; write and edit can ask for a file elsewhere.", p.workspace, strings.Join(others, ", "))
	switch {
	case opened:
		note += fmt.Sprintf(" Of the repository %s it may change objects, refs and logs, but not the configuration, hooks and packed refs.", p.git.common)
	case p.gitAway != "":
		note += fmt.Sprintf(" The git directory of this work tree, %s, lies outside: what writes there, such as a commit, is for the user to run, or for a session that starts in a folder that holds both.", p.gitAway)
	case len(p.gitPlaces(l)) == 0:
	case use == gitNeedsClosed:
		note += fmt.Sprintf(" The repository of this linked work tree, %s, lies outside. This git command needs its configuration or packed refs, which stay closed: the user has to run it.", p.git.common)
	default:
		note += fmt.Sprintf(" The git directory of this linked work tree, %s, lies outside: committing there needs approval, which is asked when git is called in the command itself.", p.git.own)
	}
	return note
}

// refusals are the ways in which programs report that the kernel refused them.
var refusals = []string{"Permission denied", "permission denied", "EACCES", "Read-only file system", "Invalid cross-device link", "cross-device link"}

// Note is a line for the result of a command that failed with this output, ""
// where nothing in it looks like the sandbox.
func (l Launch) Note(output string) string {
	if l.Sandbox != nil && slices.ContainsFunc(refusals, func(s string) bool { return strings.Contains(output, s) }) {
		return l.note
	}
	return ""
}
