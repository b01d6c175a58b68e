package permission

import (
	"context"
	"errors"
	"testing"
)

func TestCallsOfServers(t *testing.T) {
	b := newBox(t)
	for _, c := range []struct {
		name    string
		level   Level
		trusted bool
		approve string
		say     func(Request) Decision
		allowed bool
		asked   int
		refused bool // a yes was needed and not given
	}{
		{"read-only", ReadOnly, false, ApproveAsk, yes, false, 0, false},
		{"read-only, trusted", ReadOnly, true, ApproveAsk, yes, false, 0, false},
		{"untrusted, yes", WorkspaceWrite, false, ApproveAsk, yes, true, 1, false},
		{"untrusted, no", WorkspaceWrite, false, ApproveAsk, no, false, 1, true},
		{"untrusted with full access asks too", FullAccess, false, ApproveAsk, no, false, 1, true},
		{"untrusted, never", FullAccess, false, ApproveNever, yes, false, 0, true},
		{"trusted", WorkspaceWrite, true, ApproveNever, no, true, 0, false},
	} {
		who := &person{say: c.say}
		p := b.policy(func(conf *Config) { conf.Level, conf.Approve, conf.Approver = c.level, c.approve, who })
		err := p.Server(t.Context(), Request{Tool: "mcp__s__t", CallID: "c1", Title: "call t", Reason: "why"}, c.trusted)
		var denied *Denied
		if (err == nil) != c.allowed || len(who.asked) != c.asked || err != nil && (!errors.As(err, &denied) || denied.Asked != c.refused) {
			t.Errorf("%s: %v, asked %d", c.name, err, len(who.asked))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.policy(nil).Server(ctx, Request{}, true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
