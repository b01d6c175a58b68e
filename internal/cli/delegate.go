package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"deepseek/internal/engine"
	"deepseek/internal/logstore"
	"deepseek/internal/question"
	"deepseek/internal/session"
	"deepseek/internal/tool"
	"deepseek/internal/tool/delegate"
)

// delegation makes an owner that of a sub-agent. It never changes.
type delegation struct {
	parent *owner
	task   delegate.Task
	rest   func() (resume func()) // of the call that delegated
}

// root is the owner of the session that a person has to do with.
func (o *owner) root() *owner {
	for o.delegation != nil {
		o = o.delegation.parent
	}
	return o
}

// caller is who asks when the session's agent asks the user. A sub-agent may not.
func (o *owner) caller() question.Caller {
	return question.Caller{Live: true, Delegated: o.delegation != nil}
}

// rest stops the clocks that run for a call, and for those that delegated down
// to it, while a person is waited for.
func (o *owner) rest(ctx context.Context) (resume func()) {
	own := tool.Rest(ctx)
	if o.delegation == nil {
		return own
	}
	above := o.delegation.rest()
	return func() { above(); own() }
}

// delegate implements delegate.Runner: it runs a sub-agent on a session of its
// own, from its first event to its last. The parent's log names the sub-agent
// before that has asked its model anything, and only once its file is there.
func (o *owner) delegate(ctx context.Context, t delegate.Task) (r delegate.Report, err error) {
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	child, err := o.child(ctx, t)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, child.close()) }()
	canceling, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		cancel(&engine.Canceled{Cause: session.Cause{Kind: session.CauseParent}})
	})()

	what := session.Subagent{CallID: t.CallID, ChildSessionID: child.header.ID, Description: t.Description}
	var begin error
	started := func(string) {
		r.SessionID = child.header.ID
		if begin = o.agent.Record(context.WithoutCancel(ctx), session.TypeSubagent, what); begin != nil {
			cancel(&engine.Canceled{Cause: session.Cause{Kind: session.CauseParent}})
		}
	}
	told := what
	told.ParentSessionID = o.header.ID
	task := engine.Task(t.Prompt)
	r.Result, r.End, err = child.agent.Run(canceling, engine.RunOptions{Input: task, Subagent: &told, Leave: true}, started)
	return r, errors.Join(begin, err)
}

// child makes the owner of a sub-agent's session. Nothing is written yet. It
// shares what the parent has: the model, the question service, the servers, and
// the policy with its level and grants. Its shell, its files read so far and its
// log are its own.
func (o *owner) child(ctx context.Context, t delegate.Task) (*owner, error) {
	store, now := o.log.store, time.Now()
	c := &owner{
		app: o.app, cfg: o.cfg, cwd: o.cwd, key: o.key, questions: o.questions, options: o.options,
		delegation: &delegation{parent: o, task: t, rest: func() func() { return o.rest(ctx) }},
	}
	c.header = session.Header{
		Type: "session", Version: session.Version, ID: store.NewID(now), CreatedAt: now.UnixMilli(), Cwd: o.cwd,
		DelegationDepth: o.header.DelegationDepth + 1, ParentSession: o.header.ID, Origin: session.OriginSubagent,
	}
	c.ref = c.header.ID
	c.log = &sessionLog{store: store, header: c.header, published: c.announce}
	c.policy = o.policy.For(c.approver())
	c.settings = o.settings
	c.settings.Permission = string(c.policy.Level())
	c.options.Instructions = ""
	o.agent.View(func(st *session.State) {
		if st.Settings != nil { // what the server was found to need
			c.settings.Adaptations = slices.Clone(st.Settings.Adaptations)
		}
		c.options.Instructions, _ = st.AdmittedInstructions()
	})
	c.startWork()
	if servers := o.root().servers; servers != nil {
		c.base = append(c.base, servers.Tools(c.policy)...)
	}
	tools, err := c.registry()
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.options.SessionID, c.options.Spill = c.header.ID, c.log
	c.options.Tools, c.options.PlanTools, c.options.Settings = tools, nil, c.settings
	c.state.Of(c.header)
	c.agent = engine.New(c.log, c.state, nil, c.options)
	return c, nil
}

// recordApproval logs an approval. That of a sub-agent stands in its parents'
// logs too, as one of the call that delegated: it was asked on the root's card,
// and what was denied counts in the results of all.
func (o *owner) recordApproval(ctx context.Context, typ string, data any) error {
	if err := o.agent.Record(ctx, typ, data); err != nil || o.delegation == nil {
		return err
	}
	callID := o.delegation.task.CallID
	switch v := data.(type) {
	case session.ApprovalAsked:
		v.CallID = callID
		data = v
	case session.ApprovalDecided:
		v.CallID = callID
		data = v
	}
	return o.delegation.parent.recordApproval(ctx, typ, data)
}

// ofRoot tells whether a live owner file is that of a sub-agent's session: who
// has to do with it has to do with its root.
func ofRoot(path string, o logstore.Owner) bool {
	h, err := logstore.ReadHeader(path)
	return err == nil && h.ID != o.Session
}
