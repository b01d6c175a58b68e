package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deepseek/internal/acp"
	"deepseek/internal/config"
	"deepseek/internal/permission"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/version"
	"deepseek/internal/view"
)

func newACP(a *App, run func(context.Context, *App, serverOptions) error) *cobra.Command {
	return newServer(a, &cobra.Command{
		Use:   "acp",
		Short: "Serve sessions to an editor, over the Agent Client Protocol",
		Long: "Serve sessions to an editor that speaks the Agent Client Protocol, on standard input and output.\n" +
			"The editor starts this command by itself; docs/editors.md has what to write into its settings.",
		Example: `  deepseek acp
  deepseek acp --model demo --permission read-only`,
	}, run)
}

func runACP(ctx context.Context, a *App, o serverOptions) error {
	return serveStdio(ctx, a, "acp", o.settings, func(ctx context.Context, in, out *os.File) error {
		return acp.Serve(ctx, in, out, &acpServer{app: a, flags: o.settings}, acp.Options{
			Version: version.Current().Version, Log: slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
			Note: func(line string) { a.Warnf("deepseek: %s\n", view.OneLine(line)) },
		})
	})
}

// acpServer makes and finds the sessions of an editor. Each has a server of its
// own behind it, as each has its own folder and with it its own settings. Nothing
// in it changes.
type acpServer struct {
	app   *App
	flags map[string]string
}

var _ acp.Backend = (*acpServer)(nil)

// in is a server for sessions in a folder, with the MCP servers of the editor.
func (s *acpServer) in(ctx context.Context, cwd string, servers []config.Server) (*rpcServer, error) {
	r := &rpcServer{app: s.app, flags: s.flags}
	_, err := r.Initialize(ctx, &remote.InitializeParams{
		Cwd: cwd, Capabilities: &remote.ClientCapabilities{Questions: true, Approvals: true},
	})
	if err != nil {
		return nil, err
	}
	if r.cfg.Answerer == answererNone {
		r.caps = remote.ClientCapabilities{}
	}
	own := len(r.cfg.Servers)
	for _, c := range servers {
		if slices.ContainsFunc(r.cfg.Servers[:own], func(o config.Server) bool { return o.Name == c.Name }) {
			s.app.Warnf("deepseek: the MCP server %s is the one of %s, not the editor's of that name\n", c.Name, r.cfg.UserFile)
			continue
		}
		c.Trust = false // which is not an editor's to say
		r.cfg.Servers = append(r.cfg.Servers, c)
	}
	slices.SortFunc(r.cfg.Servers, func(a, b config.Server) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

// acpError is a failure as the editor is told.
func acpError(err error) error {
	if errors.Is(err, config.ErrNoKey) {
		return &acp.AuthError{Message: err.Error()}
	}
	return rpcError(err)
}

// New implements acp.Backend.
func (s *acpServer) New(ctx context.Context, cwd string, servers []config.Server) (acp.Session, error) {
	r, err := s.in(ctx, cwd, servers)
	if err != nil {
		return nil, acpError(err)
	}
	if cwd, err = r.app.Cwd(); err != nil {
		return nil, acpError(err)
	}
	owned, err := r.open(ctx, r.app.newSession(r.cfg, cwd))
	if err != nil {
		return nil, acpError(err)
	}
	return &acpSession{rpcSession: owned}, nil
}

// Load implements acp.Backend.
func (s *acpServer) Load(ctx context.Context, id, cwd string, servers []config.Server) (acp.Session, error) {
	r, err := s.in(ctx, cwd, servers)
	if err != nil {
		return nil, acpError(err)
	}
	t, err := r.locate(id)
	if err != nil {
		return nil, err
	}
	own, err := r.app.claim(ctx, r.cfg, t)
	if err != nil {
		return nil, acpError(err)
	}
	owned, err := r.open(ctx, own)
	if err != nil {
		return nil, acpError(err)
	}
	if err := owned.begin(); err != nil {
		return nil, acpError(errors.Join(err, owned.Close()))
	}
	return &acpSession{rpcSession: owned, begun: true}, nil
}

// List implements acp.Backend.
func (s *acpServer) List(ctx context.Context) ([]acp.Info, error) {
	home, err := s.app.Home()
	if err != nil {
		return nil, acpError(err)
	}
	rows, err := sessionRows(ctx, s.app.store(home), s.app.key(), false)
	if err != nil {
		return nil, acpError(err)
	}
	var list []acp.Info
	for _, r := range rows {
		if r.Error == "" {
			list = append(list, acp.Info{ID: r.ID, Cwd: r.Cwd, Title: r.Task, Updated: time.UnixMilli(r.UpdatedAt)})
		}
	}
	return list, nil
}

// acpSession is a session that an editor's server owns. A new one is begun, and
// has a file, with its first message; begun is the prompt's, of which there is
// one at a time.
type acpSession struct {
	*rpcSession
	begun bool
}

var _ acp.Session = (*acpSession)(nil)

func (s *acpSession) Header() session.Header { return s.header }
func (s *acpSession) Dir() string            { return s.cwd }
func (s *acpSession) Level() string          { return string(s.policy.Level()) }

// SetLevel implements acp.Session. The setting is in the log before it counts,
// unless the session is not begun: then it is in the first batch.
func (s *acpSession) SetLevel(ctx context.Context, level string) error {
	if err := permission.CheckLevel(permission.Level(level)); err != nil {
		return err
	}
	if err := s.agent.ChangeSettings(func(set *session.Settings) { set.Permission = level }); err != nil {
		return hosted(err)
	}
	if log := s.log.file(); log != nil {
		if err := log.Sync(ctx); err != nil {
			return hosted(err)
		}
	}
	return s.policy.SetLevel(permission.Level(level))
}

// Queue implements acp.Session.
func (s *acpSession) Queue(ctx context.Context, text string) (string, error) {
	id, err := s.agent.Queue(ctx, session.NextTurn, []session.Block{{Type: session.BlockText, Text: text}}, session.Source{Kind: session.SourceUser})
	if err != nil || s.begun {
		return id, hosted(err)
	}
	s.begun = true
	if err := s.begin(); err != nil {
		return "", err
	}
	return id, nil
}

// Cancel implements acp.Session. Before the first message there is nothing to cancel.
func (s *acpSession) Cancel(ctx context.Context, keepInbox bool) error {
	if s.log.file() == nil {
		return nil
	}
	return s.rpcSession.Cancel(ctx, keepInbox)
}

// Discard implements acp.Session.
func (s *acpSession) Discard(ctx context.Context, messageID string) (bool, error) {
	ok, err := s.agent.DiscardIf(ctx, func(*session.State) (string, error) { return messageID, nil })
	return ok, hosted(err)
}

// Durable implements acp.Session.
func (s *acpSession) Durable() int64 {
	if log := s.log.file(); log != nil {
		return log.Durable()
	}
	return 0
}

// Watch implements acp.Session. With --answerer none the editor asks nobody.
func (s *acpSession) Watch(f func(question.Event)) (stop func()) {
	if s.cfg.Answerer == answererNone {
		return func() {}
	}
	return s.rpcSession.Watch(f)
}

// AnswerCommand implements acp.Session.
func (s *acpSession) AnswerCommand(callID string) string { return s.answerCommand(callID) }

// Waiting implements acp.Session.
func (s *acpSession) Waiting(ctx context.Context) ([]remote.ActiveQuestion, error) {
	list, err := s.Questions(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Active, func(q remote.ActiveQuestion) bool { return q.Queued }), nil
}

// Rest implements acp.Session.
func (s *acpSession) Rest(ctx context.Context, cause string) error {
	if s.log.file() == nil {
		return nil // nothing was begun, and nothing is written for that
	}
	return s.rpcSession.Rest(ctx, cause)
}
