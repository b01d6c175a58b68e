package acp_test

import (
	"fmt"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

func TestMalformedInputIsAnsweredAndTheStreamGoesOn(t *testing.T) {
	s := newWorld(t, "responses: [{text: fine}]").start()
	id := s.begun()
	for _, c := range []struct {
		name, line string
		code       int
	}{
		{"no JSON", `{"jsonrpc":`, -32700},
		{"not UTF-8", "\xff", -32700},
		{"a batch", `[{"jsonrpc":"2.0","id":9,"method":"session/list"}]`, -32600},
		{"a number", `7`, -32600},
		{"neither id nor method", `{"jsonrpc":"2.0"}`, -32600},
		{"an id of another kind", `{"jsonrpc":"2.0","id":{},"method":"session/list"}`, -32600},
		{"a method of another kind", `{"jsonrpc":"2.0","id":9,"method":7}`, -32600},
		{"an empty method", `{"jsonrpc":"2.0","id":9,"method":""}`, -32600},
		{"an unknown method", `{"jsonrpc":"2.0","id":9,"method":"session/fly"}`, -32601},
		{"an extension", `{"jsonrpc":"2.0","id":9,"method":"_x/y"}`, -32601},
		{"a second initialize", request(9, "initialize", `{"protocolVersion":1}`), -32600},
		{"parameters of another kind", request(9, "session/prompt", `[]`), -32602},
		{"no parameters", `{"jsonrpc":"2.0","id":9,"method":"session/prompt"}`, -32602},
		{"a session of another kind", request(9, "session/prompt", `{"sessionId":7,"prompt":[]}`), -32602},
		{"an empty prompt", request(9, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[]}`, id)), -32602},
		{"a blank prompt", prompt(9, id, "  "), -32602},
		{"an image", request(9, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"image","data":"","mimeType":"image/png"}]}`, id)), -32602},
		{"a block of no kind", request(9, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"dance"}]}`, id)), -32602},
		{"an unknown session", prompt(9, "20260101-000000-aaaaa", "x"), -32002},
		{"a relative folder", request(9, "session/new", `{"cwd":"x","mcpServers":[]}`), -32602},
		{"a folder that is not there", request(9, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, s.ws+"/none")), -32602},
		{"more folders", request(9, "session/new", `{"cwd":"/","mcpServers":[],"additionalDirectories":["/tmp"]}`), -32602},
		{"a session that is not there", request(9, "session/load", fmt.Sprintf(`{"sessionId":"20260101-000000-aaaaa","cwd":%q,"mcpServers":[]}`, s.ws)), -32002},
		{"a way to log in", request(9, "authenticate", `{"methodId":"x"}`), -32602},
		{"a cursor", request(9, "session/list", `{"cursor":"x"}`), -32602},
		{"a line that is too long", `{"jsonrpc":"2.0","id":9,"method":"x","params":{"x":"` + strings.Repeat("x", 64<<20) + `"}}`, -32600},
		{"parameters longer than the SDK reads", `{"jsonrpc":"2.0","id":9,"method":"x","params":"` + strings.Repeat("x", 11<<20) + `"}`, -32601},
	} {
		s.send(c.line)
		m := s.expect("the refusal of "+c.name, func(m message) bool { return m.Error != nil })
		if m.Error.Code != c.code || m.Error.Message == "" {
			t.Errorf("%s: %d %s, want %d", c.name, m.Error.Code, m.Error.Message, c.code)
		}
	}
	// These have nobody to be answered to.
	s.send(
		"", "  ", cancel("20260101-000000-aaaaa"), `{"jsonrpc":"2.0","method":"session/cancel","params":[]}`,
		`{"jsonrpc":"2.0","method":"session/fly"}`, `{"jsonrpc":"2.0","id":77,"result":{}}`, `{"jsonrpc":"2.0","id":77,"error":7}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`, `{"jsonrpc":"2.0","method":"$/cancel_request"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":[]}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":98,"x":"y"}}`,
	)
	s.send(prompt(10, id, "go"))
	s.answer(10).stop(t, "end_turn")
	s.end()
}

func TestTheIDOfARequestThatIsNoneIsToldWhereItCanBeRead(t *testing.T) {
	s := newWorld(t, "responses: []").start()
	s.begun()
	for _, c := range []struct{ name, line, id string }{
		{"longer than a line may be", request(9, "session/prompt", `{"x":"`+strings.Repeat("x", 64<<20)+`"}`), "9"},
		{"an id that is null", `{"jsonrpc":"2.0","id":null,"method":"session/list"}`, ""},
		{"an id that is null and nothing else", `{"jsonrpc":"2.0","id":null}`, ""},
		{"no version", `{"id":9,"method":"session/list"}`, "9"},
		{"another version", `{"jsonrpc":"1.0","id":9,"method":"session/list"}`, "9"},
		{"a version of another kind", `{"jsonrpc":2.0,"id":9,"method":"session/list"}`, "9"},
		{"a notification without a version", `{"method":"session/cancel","params":{"sessionId":"x"}}`, ""},
		{"a method of another kind", `{"jsonrpc":"2.0","id":9,"method":7}`, "9"},
		{"a method that is null", `{"jsonrpc":"2.0","id":9,"method":null}`, "9"},
	} {
		s.send(c.line)
		m := s.expect("the refusal of "+c.name, func(m message) bool { return m.Error != nil })
		if got := strings.TrimPrefix(string(m.ID), "null"); m.Error.Code != -32600 || got != c.id {
			t.Errorf("%s: %d %s for %s, want -32600 for %s", c.name, m.Error.Code, m.Error.Message, m.ID, c.id)
		}
	}
	// A client that answers what it could not read is not answered in turn.
	s.send(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, request(10, "session/list", "{}"))
	s.expect("an answer", func(m message) bool { return string(m.ID) == "10" && m.Error == nil })
	s.end()
}

func TestAnAnswerThatIsNoneLeavesTheQuestionToTheCommand(t *testing.T) {
	s := newWorld(t, question).start(timed(600)...)
	id := s.prompted()
	s.send(fmt.Sprintf(`{"id":%s,"result":{"outcome":{"outcome":"selected","optionId":"8080"}}}`, s.asks().ID)) // without a version
	s.update("deepseek answer")
	s.send(cancel(id))
	s.answer(3).stop(t, "cancelled")
	s.end()
}

func TestCancelRequestOfAPromptCancelsIt(t *testing.T) {
	s := newWorld(t, "responses: [{text: late, delay_ms: 60000}]").start()
	id := s.begun()
	s.send(prompt(3, id, "go"), `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
	s.answer(3).stop(t, "cancelled")
	s.end()
}

func TestNothingIsServedBeforeInitialize(t *testing.T) {
	s := newWorld(t, "responses: []").start()
	s.send(request(1, "session/new", `{"cwd":"/","mcpServers":[]}`), cancel("x"), request(2, "session/fly", `{}`))
	for _, id := range []int{1, 2} {
		if m := s.answer(id); m.Error == nil || !strings.Contains(string(m.Error.Data), "NOT_INITIALIZED") {
			t.Errorf("request %d: %s %+v", id, m.Result, m.Error)
		}
	}
	s.end()
}

func TestAMissingKeyIsToldWhenASessionIsBegun(t *testing.T) {
	w := newWorld(t, "")
	s := w.start("--model", "deepseek-v4-flash")
	s.send(request(1, "initialize", `{"protocolVersion":1}`), request(2, "session/new", fmt.Sprintf(`{"cwd":%q,"mcpServers":[]}`, w.ws)))
	if m := s.answer(2); m.Error == nil || m.Error.Code != -32000 || !strings.Contains(m.Error.Message, "DEEPSEEK_API_KEY") {
		t.Errorf("session/new: %s %+v", m.Result, m.Error)
	}
	s.end()
}

func TestRefusedInsideATool(t *testing.T) {
	w := newWorld(t, "")
	w.env = append(w.env, "DEEPSEEK_TOOL=1")
	if code, _, errs := w.command("acp"); code != 2 || !strings.Contains(errs, "CALLER_IS_TOOL") {
		t.Errorf("%d %s", code, errs)
	}
}

// FuzzServer: whatever a client sends, nothing else than messages comes out,
// every request has its answer, and the server ends when its input does.
func FuzzServer(f *testing.F) {
	for _, seed := range []string{
		request(1, "initialize", `{"protocolVersion":1}`) + "\n" + request(2, "session/list", "{}"),
		request(1, "initialize", `{}`) + "\n" + `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`,
		`{"id":1,"METHOD":"initialize","error":"x","params":{"protocolVersion":"x"}}`,
		"[]\n{}\n\x00\n\"\n" + `{"id":null,"method":"initialize","params":null}`,
		`{"id":1,"result":{"outcome":1}}` + "\n" + `{"id":1e400,"method":"session/prompt","params":{"prompt":[{}]}}`,
		request(1, "initialize", `{"protocolVersion":1}`) + "\n" + request(2, sdk.AgentMethodSessionSetMode, `{"sessionId":"x","modeId":"y"}`),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		if strings.Contains(string(input), "session/new") || strings.Contains(string(input), "session\\") {
			t.Skip() // folders of this machine
		}
		s := newWorld(t, "").start()
		if _, err := s.in.Write(append(input, '\n')); err != nil {
			t.Fatal(err)
		}
		s.end()
	})
}
