package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deepseek/internal/config"
	"deepseek/internal/engine"
	"deepseek/internal/logstore"
	"deepseek/internal/model"
	"deepseek/internal/model/deepseek"
	"deepseek/internal/model/script"
	"deepseek/internal/permission"
	"deepseek/internal/prompt"
	"deepseek/internal/question"
	"deepseek/internal/redact"
	"deepseek/internal/remote"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/code"
	"deepseek/internal/tool/delegate"
	"deepseek/internal/tool/files"
	"deepseek/internal/tool/mcp"
	"deepseek/internal/tool/search"
	"deepseek/internal/tool/shell"
	"deepseek/internal/tool/todo"
	"deepseek/internal/version"
)

// owner is a session that this process owns, with everything that works on it.
// It is made in two steps, so that what is asked of a session can be refused
// before anything is written: claim takes the lock and reads, equip builds the
// agent. close ends all of it, whichever step was reached.
type owner struct {
	app     *App
	cfg     *config.Config
	ref     string // how the session is named in commands: its id, or the path it was opened by
	header  session.Header
	cwd     string // where tools work
	log     *sessionLog
	state   session.State   // until equip hands it to the agent
	closers []session.Event // what repair owes the log

	key       redact.Key // kept out of all that the session says; known before it is needed, if it is
	agent     *engine.Agent
	questions *question.Service
	hooks     *hooks
	shell     *shell.Family
	policy    *permission.Policy
	servers   *mcp.Family // nil where none is configured
	voice     voice       // of the servers' programs
	closeLLM  func()
	listener  *remote.Listener
	served    chan error // Serve's, once the listener serves
	settings  session.Settings
	base      []tool.Tool    // all but the one that asks, which depends on the mode
	options   engine.Options // what the agent was made of; its sub-agents are made alike

	delegation *delegation // of a sub-agent; nil of a root

	// Of a server's sessions, which no owned run begins:
	tellsSettings bool // the first thing written tells the settings before it
	keepsCwd      bool // --cwd is for new sessions, not for one whose folder is there
}

// store is the session store of a home.
func (a *App) store(home string) *logstore.Store {
	return logstore.New(home, logstore.WithProbe(remote.Probe))
}

// newSession begins a session. Nothing is written before its first receipt.
func (a *App) newSession(cfg *config.Config, cwd string) *owner {
	store := a.store(cfg.Home)
	now := time.Now()
	h := session.Header{Type: "session", Version: session.Version, ID: store.NewID(now), CreatedAt: now.UnixMilli(), Cwd: cwd}
	o := &owner{app: a, cfg: cfg, ref: h.ID, header: h, cwd: cwd, key: a.key()}
	o.log = &sessionLog{store: store, header: h, published: o.announce, ended: o.dropDrafts}
	return o
}

// claim takes an old session: the lock, and what its log says, without the key
// should that stand there. It changes no byte.
func (a *App) claim(ctx context.Context, cfg *config.Config, t target) (*owner, error) {
	store := a.store(cfg.Home)
	log, err := store.Own(ctx, t.path)
	if err != nil {
		return nil, a.reachable(ctx, cfg.Home, err)
	}
	o := &owner{app: a, cfg: cfg, ref: t.ref, header: log.Header(), cwd: log.Header().Cwd, key: a.key()}
	o.log = &sessionLog{store: store, header: log.Header(), log: log, ended: o.dropDrafts}
	o.state.Of(o.header)
	err = log.Replay(ctx, func(e session.Event) error {
		e.Data = o.key.Bytes(e.Data)
		return o.state.Apply(e)
	})
	if err == nil {
		o.closers, err = o.state.Repair(o.header.ID)
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if n := log.TornBytes(); n > 0 {
		// Without the session's id: the first line that has it is the one that tells it.
		a.Warnf("deepseek: the last line of the session's log is cut off (%d bytes); it will be set aside beside the log, in a file .torn\n", n)
	}
	return o, nil
}

// settle decides on the settings: what was said now, else what the session has had.
func (o *owner) settle() error {
	cfg, logged := o.cfg, o.state.Settings
	var waits *config.Waits
	perm, approve := cfg.Permission, cfg.Approve
	var adaptations []string
	if logged != nil {
		waits = &config.Waits{Mode: logged.Mode, Timeout: logged.Timeout, MaxTimeout: logged.MaxTimeout}
		adaptations = logged.Adaptations
		if !cfg.Explicit("permission") {
			perm = logged.Permission
		}
		if !cfg.Explicit("approve") {
			approve = logged.Approve
		}
	}
	w, err := cfg.Waits(waits)
	if err != nil {
		return err
	}
	o.settings = session.Settings{
		Mode: w.Mode, Timeout: w.Timeout, MaxTimeout: w.MaxTimeout,
		Permission: perm, Approve: approve, Adaptations: adaptations,
	}
	return nil
}

// equip builds the agent. Errors that are the configuration's come before
// anything is written.
func (o *owner) equip(ctx context.Context) error {
	if o.app.Getenv("GOGC") == "" {
		// What lives long in a run is small, and what is made by the megabyte dies at
		// once: looking more often costs little and keeps long answers out of memory.
		debug.SetGCPercent(40)
	}
	if err := o.place(); err != nil {
		return err
	}
	if err := o.settle(); err != nil {
		return err
	}
	cfg := o.cfg
	header, resumed, err := o.state.HeaderBody()
	if err != nil {
		return err
	}
	rc := session.RequestConfig{Model: cfg.Model, ReasoningEffort: cfg.Effort, MaxTokens: cfg.MaxTokens, Temperature: cfg.Temperature}
	if resumed {
		if !cfg.Explicit("model") {
			rc.Model = header.Config.Model
		}
		if !cfg.Explicit("effort") {
			rc.ReasoningEffort = header.Config.ReasoningEffort
		}
	}
	llm, err := o.model(ctx, &rc)
	if err != nil {
		return err
	}
	tools, err := o.tools(ctx)
	if err != nil {
		return err
	}
	planTools, err := o.planTools(tools)
	if err != nil {
		return err
	}
	window, known := model.ContextWindow(rc.Model)
	if !known || cfg.ContextWindow > 0 && rc.Provider == deepseek.Provider {
		window = max(cfg.ContextWindow, 0)
		if window == 0 {
			window = model.DefaultContextWindow
		}
	}
	if o.tellsSettings {
		if err := o.oweSettings(); err != nil {
			return err
		}
	}
	o.options = engine.Options{
		SessionID: o.header.ID, Model: llm, Config: rc, System: engine.SystemText(), Window: window,
		Tools: tools, PlanTools: planTools, Settings: o.settings, MaxSteps: cfg.MaxSteps, Instructions: o.instructions(),
		Now: time.Now, NewID: newMessageID, Spill: o.log, Redact: o.key.Bytes, Adapt: deepseek.Adapt,
		Cost: func(u session.Usage) (float64, bool) { return model.Cost(rc.Model, u, cfg.Prices) },
	}
	o.agent = engine.New(o.log, o.state, o.closers, o.options)
	o.questions.Bind(o.agent)
	o.hooks = o.newHooks()
	if log := o.log.file(); log != nil {
		if err := o.announce(log); err != nil {
			return fmt.Errorf("write who owns the session: %w", err)
		}
	}
	return nil
}

// oweSettings puts the settings behind what repair owes the log, so that they
// are in the first batch, before the receipt.
func (o *owner) oweSettings() error {
	e, err := session.NewEvent(session.TypeSettings, time.Now().UnixMilli(), o.settings)
	if err != nil {
		return err
	}
	e.Seq = o.state.Next
	if err := o.state.Apply(e); err != nil {
		return err
	}
	o.closers = append(o.closers, e)
	return nil
}

// bare makes an agent that only queues: without model, tools and clients, and
// so without what a run would lack.
func (o *owner) bare() {
	o.agent = engine.New(o.log, o.state, o.closers, engine.Options{SessionID: o.header.ID, Now: time.Now, NewID: newMessageID, Redact: o.key.Bytes})
}

// place is where the session works: where it began, unless that is gone or
// --cwd says otherwise.
func (o *owner) place() error {
	info, err := os.Stat(o.cwd)
	missing := err != nil || !info.IsDir()
	if !missing && (o.app.global.cwd == "" || o.keepsCwd) {
		return nil
	}
	cwd, err := o.app.Cwd()
	if err != nil {
		return err
	}
	switch {
	case missing:
		o.app.Warnf("deepseek: %s, where this session began, is not there; it works in %s\n", o.cwd, cwd)
	case cwd != o.cwd:
		o.app.Warnf("deepseek: this session began in %s; it works in %s\n", o.cwd, cwd)
	}
	o.cwd = cwd
	return nil
}

func newMessageID() string { return uuid.Must(uuid.NewV7()).String() }

// model makes the model that the request configuration names, and completes that.
func (o *owner) model(ctx context.Context, rc *session.RequestConfig) (model.Model, error) {
	switch file, scripted := strings.CutPrefix(rc.Model, model.ScriptPrefix); {
	case rc.Model == model.Demo:
		rc.Provider = "demo"
		return script.Demo(), nil
	case scripted:
		if !filepath.IsAbs(file) {
			file = filepath.Join(o.cwd, file)
		}
		s, err := script.Load(file)
		if err != nil {
			return nil, usagef("%v\n%s", err, fileAdvice(err, "--model script:FILE", "a script is a list `responses:` of {text, reasoning, tool_calls, finish, delay_ms, usage, error}"))
		}
		rc.Provider, rc.Model = s.Provider(), model.ScriptPrefix+file
		return s, nil
	}
	key, err := o.app.findKey(ctx, o.cfg)
	if err != nil {
		return nil, err
	}
	if _, err := deepseek.ParseBase(o.cfg.BaseURL); err != nil {
		return nil, usagef("base_url: %v\nset it with: deepseek config set base_url URL", err)
	}
	if err := deepseek.CheckProxy(o.cfg.BaseURL, o.app.Getenv); err != nil {
		return nil, usagef("%v", err)
	}
	o.key = redact.New(key)
	rc.Provider = deepseek.Provider
	llm := deepseek.New(deepseek.Config{BaseURL: o.cfg.BaseURL, Key: key, UserAgent: "deepseek/" + version.Current().Version})
	o.closeLLM = llm.Close
	return llm, nil
}

// tools makes the tools of the session, in the order in which the model sees them.
func (o *owner) tools(ctx context.Context) (*tool.Registry, error) {
	// Before any server or hook is started: what they leave behind is to be known
	// for theirs. The command that gives the key is the person's own, and may leave
	// an agent of theirs running: it came before.
	if err := shell.TakeInOrphans(); err != nil {
		return nil, err
	}
	sockets, err := remote.Dir(o.app.Getenv)
	if err != nil {
		return nil, err
	}
	if o.listener, err = remote.Listen(sockets); err != nil {
		return nil, err
	}
	o.questions = question.New(o.header.ID, question.SystemClock{})
	policy, err := permission.New(permission.Config{
		Level: permission.Level(o.settings.Permission), Approve: permission.ApproveAsk, // `never` is the approver's, which logs it
		Cwd: o.cwd, Home: o.cfg.Home, SocketDir: sockets, SessionPaths: []string{o.path()},
		KeyFile: o.cfg.KeyFile, ConfigFiles: []string{o.cfg.UserFile}, SandboxWritable: o.cfg.SandboxWritable,
		Approver: o.approver(), Getenv: o.app.Getenv,
	})
	if err != nil {
		return nil, err
	}
	o.policy = policy
	o.startWork()
	servers, err := o.serverTools(ctx, policy)
	if err != nil {
		return nil, err
	}
	o.base = append(o.base, servers...)
	return o.registry()
}

// startWork makes the session's own tools, with the shell that runs commands for it.
func (o *owner) startWork() {
	o.shell = shell.New(shell.Env{Cwd: o.cwd, Environ: o.app.Env, Policy: o.policy, Spill: o.log, Redact: o.key})
	seen := &files.Observed{}
	seen.Seed(o.state.Observed)
	o.state.Observed = nil // taken over

	all := files.New(files.Env{Cwd: o.cwd, Guard: o.policy, Observed: seen})
	all = append(all, search.New(search.Env{Cwd: o.cwd, Guard: o.policy})...)
	all = append(all, o.shell.Tools()...)
	all = append(all, todo.New(func(t session.TodoWrite) error {
		return o.agent.Record(context.Background(), session.TypeTodoWrite, t) // bounded by the disk
	}))
	// A sub-agent has them all, and its session the same list when a person goes on
	// with it: what it may not do, the tools refuse.
	all = append(all, o.goalTools()...)
	all = append(all, code.New(), delegate.New(o.header.DelegationDepth, o.delegate))
	o.base = all
}

// registry is the tools for the settings as they stand.
func (o *owner) registry() (*tool.Registry, error) {
	longest := 0
	if o.settings.MaxTimeout != nil {
		longest = *o.settings.MaxTimeout
	}
	ask := question.NewTool(o.questions, question.ToolOptions{
		Timed: o.settings.Mode == config.Timed, Default: o.settings.Timeout, Max: longest, Caller: o.caller,
	})
	return tool.NewRegistry(append(slices.Clip(o.base), ask)...)
}

// path is where the session's file lies, or will lie.
func (o *owner) path() string {
	if log := o.log.file(); log != nil {
		return log.Path()
	}
	return filepath.Join(o.log.store.Dir(o.header.Cwd), o.header.ID+".jsonl")
}

// announce says, beside the file, who owns the session and how to reach them.
// It is called when there is a file, and with the listener ready.
func (o *owner) announce(log *logstore.Log) error {
	root := o.root()
	return log.Announce(logstore.Owner{PID: os.Getpid(), Socket: root.listener.Path(), StartedAt: time.Now().UnixMilli(), Session: root.header.ID})
}

// serve answers clients on the control socket until close.
func (o *owner) serve() {
	o.served = make(chan error, 1)
	go func() {
		o.served <- o.listener.Serve(context.Background(), &host{o}, remote.Options{Version: version.Current().Version})
	}()
}

// stopAccepting has the control socket refuse everybody: what clients had sent
// by then is answered. Until close the socket stays, so that whoever finds the
// lock taken learns by whom.
func (o *owner) stopAccepting() {
	if o.listener != nil {
		o.listener.Leave()
	}
}

// closeSocket ends the control socket.
func (o *owner) closeSocket() error {
	if o.listener == nil {
		return nil
	}
	err := o.listener.Close()
	if o.served != nil {
		err = errors.Join(err, <-o.served)
		o.served = nil
	}
	return err
}

// closeTime bounds the end of an owner: no child process and no lock outlives it.
const closeTime = 4 * time.Second

// close ends everything that the owner began, and frees the session.
func (o *owner) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var err error
	o.hooks.ending()
	if o.agent != nil {
		err = o.agent.Dispose(ctx)
	}
	err = errors.Join(err, o.closeSocket())
	if o.servers != nil {
		err = errors.Join(err, o.servers.Close(ctx))
	}
	if o.shell != nil {
		err = errors.Join(err, o.shell.Close(ctx))
	}
	o.hooks.close()
	if o.closeLLM != nil {
		o.closeLLM()
	}
	return errors.Join(err, o.log.Close())
}

// dropDrafts removes the drafts of questions that take no answer any more,
// whoever gave it. A card drops its own, too; what cannot be removed now, or is
// saved once more by a card that does not know yet, goes the next time.
func (o *owner) dropDrafts() {
	_ = prompt.FileDrafts{Dir: logstore.DraftsDir(o.path())}.Keep(func() (calls []string) {
		o.agent.View(func(st *session.State) {
			for _, q := range st.Questions.Active() {
				calls = append(calls, q.CallID)
			}
		})
		return calls
	})
}

// answerCommand is the command that answers a question of the session, ready
// to be pasted into a shell.
func (o *owner) answerCommand(callID string) string {
	return o.app.answerCommand(o.cfg.Home, o.ref, callID)
}
