package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/session"
)

// handler serves one method. It calls taken, if it goes on for long, when the
// next message may be looked at.
type handler func(ctx context.Context, s *server, params json.RawMessage, taken func()) (any, error)

// methods are what is served. A method of the protocol that is not here is
// answered as unknown.
var methods = map[string]handler{
	sdk.AgentMethodInitialize:     method((*server).initialize),
	sdk.AgentMethodAuthenticate:   method((*server).authenticate),
	sdk.AgentMethodSessionNew:     long((*server).newSession),
	sdk.AgentMethodSessionLoad:    long((*server).load),
	sdk.AgentMethodSessionResume:  long((*server).resume),
	sdk.AgentMethodSessionList:    long((*server).list),
	sdk.AgentMethodSessionClose:   long((*server).closeSession),
	sdk.AgentMethodSessionSetMode: method((*server).setMode),
	sdk.AgentMethodSessionCancel:  method((*server).cancel),
	sdk.AgentMethodSessionPrompt:  prompting,
}

func decode[P any](raw json.RawMessage) (p P, err error) {
	if err := checkParams(raw, reflect.TypeFor[P]()); err != nil {
		return p, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, wrong("", "are not understood: %v", session.PlainJSON(err))
	}
	return p, nil
}

// method is a handler of decoded parameters that ends before the next message.
func method[P, R any](f func(*server, context.Context, P) (R, error)) handler {
	return func(ctx context.Context, s *server, raw json.RawMessage, _ func()) (any, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.asking, cancel)()
		res, err := f(s, ctx, p)
		if err != nil {
			return nil, err
		}
		return res, nil
	}
}

func (s *server) initialize(_ context.Context, p sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return sdk.InitializeResponse{}, invalidRequest("initialize was answered already: it is sent once")
	}
	s.ready = true
	s.forms = p.ClientCapabilities.Elicitation != nil && p.ClientCapabilities.Elicitation.Form != nil
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "deepseek", Title: sdk.Ptr("deepseek"), Version: s.o.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			McpCapabilities:    sdk.McpCapabilities{Http: true},
			PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{
				List: &sdk.SessionListCapabilities{}, Close: &sdk.SessionCloseCapabilities{}, Resume: &sdk.SessionResumeCapabilities{},
			},
		},
	}, nil
}

// authenticate: there is nothing to log in to. A key that is missing is told when a session is begun.
func (s *server) authenticate(_ context.Context, p sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, invalidParams("methodId", "there is no method %q; the API key is read from the environment or the configuration", clip(p.MethodId))
}

// where checks what a client says of where a session works.
func where(cwd string, more []string) error {
	switch {
	case !filepath.IsAbs(cwd):
		return invalidParams("cwd", "must be an absolute path, is %q", clip(cwd))
	case len(more) > 0:
		return invalidParams("additionalDirectories", "are not offered: a session works in one folder")
	}
	return nil
}

func modes(owned Session) *sdk.SessionModeState {
	state := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(owned.Level())}
	for _, l := range levels {
		state.AvailableModes = append(state.AvailableModes, sdk.SessionMode{
			Id: sdk.SessionModeId(l.id), Name: l.name, Description: sdk.Ptr(l.about),
		})
	}
	return state
}

func (s *server) setMode(ctx context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	at, err := s.at(p.SessionId)
	if err != nil {
		return sdk.SetSessionModeResponse{}, err
	}
	if err := at.ready(ctx); err != nil {
		return sdk.SetSessionModeResponse{}, err
	}
	var known []string
	for _, l := range levels {
		known = append(known, l.id)
	}
	if !slices.Contains(known, string(p.ModeId)) {
		return sdk.SetSessionModeResponse{}, invalidParams("modeId", "must be one of %q, is %q", known, clip(string(p.ModeId)))
	}
	return sdk.SetSessionModeResponse{}, at.session.SetLevel(context.WithoutCancel(ctx), string(p.ModeId))
}

func (s *server) list(p sdk.ListSessionsRequest) (work[sdk.ListSessionsResponse], error) {
	if p.Cursor != nil {
		return nil, invalidParams("cursor", "is none that was given out: the list is whole")
	}
	return func(ctx context.Context) (sdk.ListSessionsResponse, error) {
		res := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
		all, err := s.backend.List(ctx)
		for _, i := range all {
			if p.Cwd != nil && filepath.Clean(*p.Cwd) != i.Cwd {
				continue
			}
			info := sdk.SessionInfo{SessionId: sdk.SessionId(i.ID), Cwd: i.Cwd, UpdatedAt: sdk.Ptr(i.Updated.UTC().Format(time.RFC3339))}
			if i.Title != "" {
				info.Title = sdk.Ptr(i.Title)
			}
			res.Sessions = append(res.Sessions, info)
		}
		return res, err
	}, nil
}

func (s *server) cancel(_ context.Context, p sdk.CancelNotification) (any, error) {
	at, err := s.at(p.SessionId)
	if err != nil {
		return nil, err
	}
	return nil, at.cancel()
}

// prompting takes the session's slot before it lets the next message in, and
// answers when the prompt has ended.
func prompting(ctx context.Context, s *server, raw json.RawMessage, taken func()) (any, error) {
	p, err := decode[sdk.PromptRequest](raw)
	if err != nil {
		return nil, err
	}
	text, err := promptText(p.Prompt)
	if err != nil {
		return nil, err
	}
	at, err := s.at(p.SessionId)
	if err != nil {
		return nil, err
	}
	sl, err := at.begin()
	if err != nil {
		return nil, err
	}
	taken()
	reason, err := at.run(ctx, sl, text)
	if err != nil {
		return nil, err
	}
	return sdk.PromptResponse{StopReason: reason}, nil
}

// joined is the first error, with what went wrong in cleaning up behind it.
func joined(err, after error) error {
	if after == nil {
		return err
	}
	e := *requestError(err)
	e.Message += "\n" + after.Error()
	return &e
}
