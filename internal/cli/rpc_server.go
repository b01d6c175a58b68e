package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"deepseek/internal/config"
	"deepseek/internal/logstore"
	"deepseek/internal/question"
	"deepseek/internal/remote"
	"deepseek/internal/session"
)

// CodeConfig refuses a request for something that is wrong with the settings.
const CodeConfig = "CONFIG"

// rpcServer makes and finds the sessions of one server on standard streams. Its
// methods are called one at a time; after Initialize nothing in it changes.
type rpcServer struct {
	app   *App
	flags map[string]string

	cfg  *config.Config
	caps remote.ClientCapabilities
}

var _ remote.Backend = (*rpcServer)(nil)

// Initialize takes the client's settings as flags of the highest rank.
func (r *rpcServer) Initialize(_ context.Context, p *remote.InitializeParams) (remote.ServerCapabilities, error) {
	app := *r.app
	cwd := p.Cwd
	if !filepath.IsAbs(cwd) {
		here, err := r.app.Cwd()
		if err != nil {
			return remote.ServerCapabilities{}, rpcError(err)
		}
		cwd = filepath.Join(here, cwd)
	}
	app.global.cwd = cwd
	if _, err := app.Cwd(); err != nil {
		return remote.ServerCapabilities{}, badParam("cwd", err.Error())
	}
	settings := maps.Clone(r.flags)
	params := map[string]string{"model": p.Model, "mode": p.Mode, "permission": p.Permission}
	if p.Timeout != nil {
		params["timeout"] = strconv.FormatInt(int64(*p.Timeout), 10)
	}
	for key, value := range params {
		if value != "" {
			settings[key] = value
		}
	}
	cfg, err := app.Load(settings, false)
	if err == nil {
		_, err = cfg.Waits(nil)
	}
	if err != nil {
		return remote.ServerCapabilities{}, paramError(err, params)
	}
	r.app, r.cfg = &app, cfg
	if p.Capabilities != nil {
		r.caps = *p.Capabilities
	}
	return remote.ServerCapabilities{Questions: true, Approvals: r.caps.Approvals || cfg.Answerer == answererRemote}, nil
}

func badParam(path, reason string) error {
	return &remote.Error{Code: remote.CodeInvalidParams, Path: path, Message: path + ": " + reason}
}

// paramError names the parameter that a setting came from.
func paramError(err error, params map[string]string) error {
	var bad *config.Error
	if errors.As(err, &bad) {
		name := strings.ReplaceAll(strings.TrimPrefix(bad.Source.Name, "--"), "-", "_")
		if bad.Source.Origin == config.FromFlag && params[name] != "" {
			return badParam(name, strings.ReplaceAll(bad.Reason, "--", ""))
		}
	}
	return rpcError(err)
}

// rpcError gives a failure the code that clients know it by.
func rpcError(err error) error {
	var (
		own    *remote.Error
		asked  *question.Error
		coder  remote.Coder
		locate *logstore.LocateError
	)
	switch {
	case err == nil, errors.As(err, &own), errors.As(err, &asked), errors.As(err, &coder):
		return err
	case errors.As(err, &locate), errors.Is(err, logstore.ErrNotFound):
		return &remote.Error{Code: remote.CodeSessionNotFound, Message: err.Error()}
	}
	c := classify(session.PlainJSON(err)) // a program needs no advice on what to type
	code, message := c.Code, c.Message
	if code == "" {
		code = CodeConfig
	}
	if c.Hint != "" {
		message += "\n" + c.Hint
	}
	return &remote.Error{Code: code, Message: message}
}

// Begin implements remote.Backend.
func (r *rpcServer) Begin(ctx context.Context, content []session.Block) (remote.Session, string, error) {
	cwd, err := r.app.Cwd()
	if err != nil {
		return nil, "", rpcError(err)
	}
	s, err := r.open(ctx, r.app.newSession(r.cfg, cwd))
	if err != nil {
		return nil, "", rpcError(err)
	}
	id, err := s.agent.Queue(ctx, session.NextTurn, content, session.Source{Kind: session.SourceUser})
	if err != nil {
		return nil, "", rpcError(errors.Join(hosted(err), s.Close()))
	}
	if err := s.begin(); err != nil {
		return nil, "", rpcError(errors.Join(err, s.Close()))
	}
	return s, id, nil
}

// Take implements remote.Backend.
func (r *rpcServer) Take(ctx context.Context, ref string) (remote.Session, error) {
	t, err := r.locate(ref)
	if err != nil {
		return nil, err
	}
	own, err := r.app.claim(ctx, r.cfg, t)
	if err != nil {
		return nil, rpcError(err)
	}
	s, err := r.open(ctx, own)
	if err == nil {
		if err = s.begin(); err != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return nil, rpcError(err)
	}
	return s, nil
}

// locate finds a session by its whole id or its path: what a part of an id
// means depends on what else there is.
func (r *rpcServer) locate(ref string) (target, error) {
	cwd, err := r.app.Cwd()
	if err != nil {
		return target{}, rpcError(err)
	}
	path, err := r.app.store(r.cfg.Home).Locate(ref, cwd)
	if err != nil {
		return target{}, rpcError(err)
	}
	t := target{path: path, ref: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	switch {
	case byPath(ref):
		t.ref = path
	case t.ref != ref:
		return target{}, &remote.Error{Code: remote.CodeSessionNotFound, Message: "there is no session " + cut(ref) + "; a session is named by its whole id or its path"}
	}
	return t, nil
}

// Find implements remote.Backend.
func (r *rpcServer) Find(_ context.Context, ref string) (string, error) {
	t, err := r.locate(ref)
	if err != nil {
		return "", err
	}
	h, err := logstore.ReadHeader(t.path)
	if err != nil {
		return "", rpcError(err)
	}
	return h.ID, nil
}

// Free implements remote.Backend.
func (r *rpcServer) Free(ctx context.Context, ref string) error {
	t, err := r.locate(ref)
	if err != nil {
		return err
	}
	if o, live := r.app.store(r.cfg.Home).LiveOwner(ctx, t.path); live {
		return rpcError(r.app.reachable(ctx, r.cfg.Home, o.Busy(t.path)))
	}
	return nil
}

// Read implements remote.Backend.
func (r *rpcServer) Read(ctx context.Context, ref string, fromSeq int64, maxBytes int) (session.Header, remote.Page, error) {
	t, err := r.locate(ref)
	if err != nil {
		return session.Header{}, remote.Page{}, err
	}
	h, err := logstore.ReadHeader(t.path)
	if err != nil {
		return h, remote.Page{}, rpcError(err)
	}
	var page remote.Page
	size, key := 0, r.app.key()
	end, err := logstore.Read(ctx, t.path, func(l logstore.Line) error {
		if l.Seq < fromSeq {
			return nil
		}
		if size += len(l.Raw); size > maxBytes && len(page.Events) > 0 {
			page.More = true
			return io.EOF
		}
		page.Events = append(page.Events, bytes.Clone(key.Bytes(l.Raw)))
		page.NextSeq = l.Seq + 1
		return nil
	})
	if err != nil && !page.More {
		return h, remote.Page{}, rpcError(err)
	}
	if len(page.Events) == 0 {
		page.NextSeq = min(fromSeq, end.Next)
	}
	return h, page, nil
}

// Questions implements remote.Backend.
func (r *rpcServer) Questions(ctx context.Context, ref string) (remote.QuestionList, error) {
	t, err := r.locate(ref)
	if err != nil {
		return remote.QuestionList{}, err
	}
	_, live := r.app.store(r.cfg.Home).LiveOwner(ctx, t.path)
	list, _, err := readQuestions(ctx, r.app.key(), t.path, live)
	if err != nil {
		return remote.QuestionList{}, rpcError(err)
	}
	for i := range list.Active {
		list.Active[i].Answer = r.app.command(r.cfg.Home, "answer", t.ref, list.Active[i].CallID)
	}
	return list, nil
}

// List implements remote.Backend.
func (r *rpcServer) List(ctx context.Context) (any, error) {
	rows, err := sessionRows(ctx, r.app.store(r.cfg.Home), r.app.key(), false)
	if err != nil {
		return nil, rpcError(err)
	}
	return rows, nil
}
