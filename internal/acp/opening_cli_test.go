package acp_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestAServerThatIsSlowToComeUpHoldsUpNobodyElse(t *testing.T) {
	w := newWorld(t, "responses: [{text: fine}]")
	s := w.start()
	first := s.begun()
	s.send(
		request(10, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[{"name":"slow","command":"sleep","args":["60"],"env":[]}]}`, s.ws)),
		prompt(11, first, "go"),
		request(12, "session/list", "{}"),
	)
	for i := range 4 { // at once
		s.send(request(20+i, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, s.ws)))
	}
	s.answer(11).stop(t, "end_turn")
	if m := s.answer(12); m.Error != nil {
		t.Errorf("session/list: %+v", m.Error)
	}
	ids := map[string]bool{first: true}
	for i := range 4 {
		var res struct{ SessionID string }
		if m := s.answer(20 + i); json.Unmarshal(m.Result, &res) != nil || res.SessionID == "" || ids[res.SessionID] {
			t.Errorf("session/new: %s %+v", m.Result, m.Error)
		}
		ids[res.SessionID] = true
	}
	if s.answers(10) != 0 {
		t.Fatal("the slow server has come up")
	}
	s.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":10}}`)
	if m := s.answer(10); m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("the cancelled session/new: %s %+v", m.Result, m.Error)
	}
	s.end()
}
