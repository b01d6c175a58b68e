package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

type showOptions struct {
	session  string
	expand   bool
	json     bool
	html     string // file, or - for stdout
	toHTML   bool
	follow   bool
	settings map[string]string
}

func newShowCommand(a *App, run func(context.Context, *App, showOptions) error) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:               "show SESSION",
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		Short:             "Show the transcript of a session",
		Long: "Show the transcript of a session: an id, a part of one, last, or a path to its file.\n" +
			"What happened between input and answer is folded to a line; --expand opens it. A session that is being worked on can be read too.",
		Example: `  deepseek show last
  deepseek show last --html transcript.html`,
		Args: arguments("SESSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session, o.settings = args[0], given(cmd.Flags())
			o.toHTML = cmd.Flags().Changed("html")
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), a, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.expand, "expand", false, "open the groups: each call with its result, and reasoning")
	f.BoolVar(&o.json, "json", false, "print the transcript as one JSON object, nothing left out")
	f.StringVar(&o.html, "html", "", "write one self-contained page to a `file`, - for stdout")
	f.BoolVar(&o.follow, "follow", false, "go on until the run that is at work ends")
	addSettings(cmd, "color")
	return cmd
}

func (o showOptions) check() error {
	switch {
	case o.json && o.toHTML:
		return usagef("--json and --html are two formats\ngive one of them")
	case o.follow && (o.json || o.toHTML):
		return usagef("--follow shows text only\nfor events as they come: deepseek run --output stream-json")
	case o.toHTML && o.html == "":
		return usagef("--html needs the name of a file, or - for stdout\nfor instance: --html session.html")
	}
	return nil
}

// reading is a session that is being shown.
type reading struct {
	a   *App
	cfg *config.Config
	o   showOptions
	target
}

func runShow(ctx context.Context, a *App, o showOptions) error {
	cfg, err := a.Load(o.settings, false)
	if err != nil {
		return err
	}
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	t, err := a.target(cfg, o.session)
	if err != nil {
		return err
	}
	r := &reading{a: a, cfg: cfg, o: o, target: t}
	switch {
	case o.json:
		t, err := r.transcript(ctx, nil)
		if err != nil {
			return err
		}
		return a.printWhole(ctx, func(w io.Writer) error { return view.WriteJSON(w, t) })
	case o.toHTML:
		t, err := r.transcript(ctx, view.HTMLBound)
		if err != nil {
			return err
		}
		page := func(w io.Writer) error {
			return view.WriteHTML(w, t, view.HTMLOptions{Location: time.Local, Answer: r.text().Answer})
		}
		if o.html == "-" {
			return a.printWhole(ctx, page)
		}
		return a.writePage(cfg.Home, o.html, page)
	case o.follow:
		return r.follow(ctx, signals)
	}
	text, err := r.transcript(ctx, view.TextBound(o.expand))
	if err != nil {
		return err
	}
	return a.paged(ctx, signals, func(w io.Writer) error { return view.WriteText(w, text, r.text()) })
}

// text is how text looks on this stdout.
func (r *reading) text() view.TextOptions {
	a := r.a
	o := view.TextOptions{
		Expand: r.o.expand, Terminal: a.OutTerminal(), Colour: a.outColour(r.cfg), ASCII: !a.UTF8(), Location: time.Local,
		Answer: func(callID string) string { return a.answerCommand(r.cfg.Home, r.ref, callID) },
	}
	if o.Terminal {
		o.Width = a.outWidth()
	}
	return o
}

// transcript reads the session as it stands.
func (r *reading) transcript(ctx context.Context, keep view.Bound) (*view.Transcript, error) {
	_, live := r.a.store(r.cfg.Home).LiveOwner(ctx, r.path)
	t, _, err := r.read(ctx, keep, live)
	return t, err
}

// read reads the file without a lock. Whether an owner lives has to be asked
// before: one that leaves while the file is read has closed its turn by then or
// will not, but one that was not there may have begun one.
func (r *reading) read(ctx context.Context, keep view.Bound, live bool) (*view.Transcript, logstore.End, error) {
	h, err := logstore.ReadHeader(r.path)
	if err != nil {
		return nil, logstore.End{}, err
	}
	b, key := view.NewBuilder(keep), r.a.key()
	b.Of(h)
	end, err := logstore.Read(ctx, r.path, func(l logstore.Line) error {
		e, err := l.Event()
		if err != nil {
			return err
		}
		e.Data = key.Bytes(e.Data) // before anything is cut, wrapped or escaped
		if err := b.Apply(e); err != nil {
			return placed(err, r.path, l)
		}
		return nil
	})
	if err != nil {
		return nil, end, err
	}
	if !live && b.Open() {
		_, live = r.a.store(r.cfg.Home).LiveOwner(ctx, r.path)
	}
	if err := context.Cause(ctx); err != nil {
		return nil, end, err
	}
	t, err := b.End(end.Header, live)
	return t, end, err
}

// placed says where in the file an event stands that cannot be understood.
func placed(err error, path string, l logstore.Line) error {
	if !errors.Is(err, session.ErrDamaged) {
		return err
	}
	reason := strings.TrimPrefix(err.Error(), session.ErrDamaged.Error()+": ")
	return &logstore.DamageError{Path: path, Line: l.Number, Offset: l.Offset, Reason: reason}
}

// printWhole writes to stdout until ctx ends. A reader who has gone away is no
// failure, and what else goes wrong with stdout is told by Main.
func (a *App) printWhole(ctx context.Context, write func(io.Writer) error) error {
	out := bufio.NewWriterSize(&untilGone{ctx, a.Out}, 64<<10)
	err := errors.Join(write(out), out.Flush())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if a.Out.Gone() {
		return nil
	}
	return err
}

// untilGone refuses what nobody would read, so that the writing ends.
type untilGone struct {
	ctx context.Context
	out *output
}

func (u *untilGone) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	if u.out.Gone() {
		return 0, io.ErrClosedPipe
	}
	return u.out.Write(p)
}
