package goal

import (
	"context"
	"errors"
	"strings"
	"testing"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

// book keeps a state as an agent does: what is changed is folded. fail, if set,
// is the log's error.
type book struct {
	state session.State
	fail  error
	n     int
}

func (b *book) fold(t *testing.T, typ string, data any) {
	t.Helper()
	e, err := session.NewEvent(typ, 1, data)
	if err != nil {
		t.Fatal(err)
	}
	e.Seq = b.state.Next
	if err := b.state.Apply(e); err != nil {
		t.Fatal(err)
	}
}

func registry(t *testing.T, b *book, maxRounds int) *tool.Registry {
	t.Helper()
	return offered(t, b, Env{MaxRounds: maxRounds})
}

func offered(t *testing.T, b *book, env Env) *tool.Registry {
	t.Helper()
	r, err := tool.NewRegistry(New(Env{
		View: func(f func(*session.State)) { f(&b.state) },
		Change: func(ctx context.Context, decide func(*session.State) (*session.Goal, error)) error {
			g, err := decide(&b.state)
			if err != nil {
				return err
			}
			if b.fail != nil {
				return b.fail
			}
			b.fold(t, session.TypeGoalChange, session.GoalChange{Goal: g})
			return ctx.Err()
		},
		NewID: func() string { return "g" }, MaxRounds: env.MaxRounds, Delegated: env.Delegated,
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func call(ctx context.Context, r *tool.Registry, name, args string) tool.Result {
	tl, raw, bad := r.Check(name, args)
	if bad != nil {
		return *bad
	}
	return tl.Run(ctx, tool.Call{ID: "c", Arguments: raw})
}

func TestTheSchemasAreSoundAndSmall(t *testing.T) {
	r := registry(t, &book{}, 256)
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, s := range r.Specs() {
		size += len(s.Description) + len(s.Parameters)
	}
	if size > 1600 {
		t.Errorf("%d bytes in each request", size)
	}
}

// TestAGoalsLife is one session: each call with what came of it.
func TestAGoalsLife(t *testing.T) {
	b := &book{}
	r := registry(t, b, 50)
	speak := func() {
		b.n++
		b.fold(t, session.TypeTurnStart, session.TurnStart{Turn: b.n})
		b.fold(t, session.TypeUserMessage, session.NewUserMessage("m", "x", session.Source{Kind: session.SourceUser}))
	}
	quiet := func() {
		b.n++
		b.fold(t, session.TypeTurnStart, session.TurnStart{Turn: b.n})
	}
	for _, c := range []struct {
		before     func()
		name, args string
		want       string
	}{
		{quiet, "get_goal", ``, `{"goal":null}`},
		{nil, "create_goal", `{"objective":"o"}`, "GOAL_NEEDS_USER: only a message of the user"},
		{speak, "create_goal", `{"objective":" "}`, "INVALID_ARGUMENTS: objective: is blank"},
		{nil, "create_goal", `{"objective":"o","max_goal_rounds":51}`, "INVALID_ARGUMENTS: max_goal_rounds: 51 is out of range; it is 1 to 50"},
		{nil, "create_goal", `{"objective":"o","max_goal_rounds":0}`, "INVALID_ARGUMENTS: create_goal: max_goal_rounds: "},
		{nil, "update_goal", `{"goal_id":"g","revision":1,"action":"pause"}`, "GOAL_CONFLICT: goal_id: the session has no goal"},
		{nil, "create_goal", `{"objective":" o "}`, `{"goal":{"id":"g","revision":1,"objective":"o","phase":"active","rounds":0,"maxRounds":50}}`},
		{nil, "create_goal", `{"objective":"p"}`, "GOAL_EXISTS: the session has a goal that is not done, g (active, revision 1): o"},
		{nil, "update_goal", `{"goal_id":"g","revision":1,"action":"edit","objective":"p"}`, `{"goal":{"id":"g","revision":2,"objective":"p","phase":"active","rounds":0,"maxRounds":50}}`},
		{nil, "update_goal", `{"goal_id":"g","revision":1,"action":"pause"}`, "GOAL_CONFLICT: revision: 1 is not the present one, 2"},
		{quiet, "update_goal", `{"goal_id":"g","revision":2,"action":"pause"}`, "GOAL_NEEDS_USER"},
		{nil, "update_goal", `{"goal_id":"g","revision":2,"action":"stop"}`, "INVALID_ARGUMENTS: update_goal: action: must be one of"},
		{nil, "update_goal", `{"goal_id":"g","revision":2,"action":"blocked"}`, "INVALID_ARGUMENTS: blocked_reason: is blank"},
		{nil, "update_goal", `{"goal_id":"g","revision":2,"action":"blocked","blocked_reason":"no key"}`, `"revision":3,"objective":"p","phase":"blocked"`},
		{nil, "get_goal", `{}`, `{"goal":{"id":"g","revision":3,"objective":"p","phase":"blocked","rounds":0,"maxRounds":50}}`},
		{nil, "update_goal", `{"goal_id":"g","revision":3,"action":"complete"}`, `"revision":4,"objective":"p","phase":"complete"`},
	} {
		if c.before != nil {
			c.before()
		}
		if got := call(t.Context(), r, c.name, c.args); !strings.Contains(got.Content, c.want) || (got.Code != "") != !strings.HasPrefix(got.Content, "{") {
			t.Errorf("%s %s\n got %s\nwant %s", c.name, c.args, got.Content, c.want)
		}
	}
}

// TestASubAgentBeginsNoGoal: what delegated to it wrote its task, whatever that looks like.
func TestASubAgentBeginsNoGoal(t *testing.T) {
	b := &book{}
	b.fold(t, session.TypeUserMessage, session.NewUserMessage("m", "x", session.Source{Kind: session.SourceUser}))
	r := offered(t, b, Env{MaxRounds: 256, Delegated: true})
	if got := call(t.Context(), r, "create_goal", `{"objective":"o"}`); got.Code != session.CodeGoalNeedsUser || !strings.Contains(got.Content, "sub-agent") {
		t.Errorf("%+v", got)
	}
	if got := call(t.Context(), r, "get_goal", `{}`); got.Content != `{"goal":null}` {
		t.Errorf("%+v", got)
	}
}

func TestAChangeThatIsNotLoggedIsTold(t *testing.T) {
	b := &book{}
	b.fold(t, session.TypeUserMessage, session.NewUserMessage("m", "x", session.Source{Kind: session.SourceUser}))
	b.fail = errors.New("no space left on device")
	r := registry(t, b, 256)
	if got := call(t.Context(), r, "create_goal", `{"objective":"o"}`); got.Code != tool.CodeInternal || !strings.Contains(got.Content, "no space left") {
		t.Errorf("%+v", got)
	}
	b.fail = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := call(ctx, r, "create_goal", `{"objective":"o"}`); got.Code != tool.CodeAborted {
		t.Errorf("%+v", got)
	}
}
