package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// question is a script whose model asks something and then goes on.
const question = `
responses:
  - tool_calls:
      - id: q1
        name: ask_user_question
        arguments:
          questions:
            - {id: port, header: Port, question: "Which port?", options: [{label: "8080"}, {label: "9090", description: the other one}]}
  - text: going on
  - text: taken up
`

func timed(seconds int) []string {
	return []string{"--mode", "timed", "--timeout", fmt.Sprint(seconds)}
}

// soon is a time in seconds that a question is to wait in vain, and in which even a slow
// machine shows it first.
const soon = 5

func TestQuestionIsAChoiceThatTheClientAnswers(t *testing.T) {
	for _, mode := range [][]string{{"--mode", "legacy"}, timed(100), timed(-1)} {
		t.Run(strings.Join(mode, " "), func(t *testing.T) {
			s := newWorld(t, question).start(mode...)
			id := s.prompted()
			s.update(`"toolCallId":"q1"`) // before the client is asked about it
			q := s.asks()
			for _, want := range []string{`"toolCallId":"q1"`, `"title":"Port: Which port?"`, `"optionId":"8080"`, `"optionId":"9090"`, `the other one`, `"optionId":"skip"`} {
				if !strings.Contains(string(q.Params), want) {
					t.Errorf("the question lacks %s: %s", want, q.Params)
				}
			}
			s.choose(q, "9090")
			s.update("port: 9090")
			s.answer(3).stop(t, "end_turn")
			s.end()
			if !strings.Contains(s.log(id), `{\"answers\":[{\"id\":\"port\",\"selected\":[\"9090\"]}]}`) {
				t.Error("the answer is not in the log")
			}
		})
	}
}

func TestSkippingAQuestionIsAnAnswer(t *testing.T) {
	s := newWorld(t, question).start(timed(100)...)
	s.prompted()
	s.choose(s.asks(), "skip")
	s.update("(skipped)")
	s.answer(3).stop(t, "end_turn")
	s.end()
}

func TestBatchOfQuestionsIsAskedOneByOneAndAnsweredWhole(t *testing.T) {
	s := newWorld(t, `
responses:
  - tool_calls:
      - id: q1
        name: ask_user_question
        arguments:
          questions:
            - {id: a, question: "A?", options: [{label: x}, {label: "skip"}]}
            - {id: b, question: "B?", options: [{label: y}]}
  - text: going on
`).start(timed(100)...)
	id := s.prompted()
	first := s.asks()
	if !strings.Contains(string(first.Params), "(1/2) A?") || !strings.Contains(string(first.Params), `"optionId":"skip-"`) {
		t.Errorf("the first: %s", first.Params)
	}
	s.choose(first, "skip")
	s.choose(s.asks(), "y")
	s.answer(3).stop(t, "end_turn")
	s.end()
	if !strings.Contains(s.log(id), `{\"answers\":[{\"id\":\"a\",\"selected\":[\"skip\"]},{\"id\":\"b\",\"selected\":[\"y\"]}]}`) {
		t.Error("the batch is not in the log")
	}
}

func TestExpiryCancelsTheRequestAndAnAnswerThatStillArrivesIsALateOne(t *testing.T) {
	t.Parallel()
	s := newWorld(t, question).start(timed(soon)...)
	id := s.prompted()
	q := s.asks()
	c := s.expect("the end of the request", func(m message) bool { return m.Method == "$/cancel_request" })
	if want := fmt.Sprintf(`{"requestId":%s}`, q.ID); string(c.Params) != want {
		t.Errorf("cancelled: %s, want %s", c.Params, want)
	}
	s.answer(3).stop(t, "end_turn")
	s.choose(q, "8080")
	s.update("Which port?\\n→ 8080") // admitted, as a message of the person
	s.update("taken up")
	s.end()
	if n := strings.Count(s.log(id), `"kind":"user-question-reply"`); n != 2 { // queued, admitted
		t.Errorf("%d events name the reply, want 2", n)
	}
}

func TestAHalfAnsweredBatchThatExpiresIsNoLateAnswer(t *testing.T) {
	t.Parallel()
	s := newWorld(t, `
responses:
  - tool_calls:
      - id: q1
        name: ask_user_question
        arguments:
          questions:
            - {id: a, question: "A?", options: [{label: x}]}
            - {id: b, question: "B?", options: [{label: y}]}
  - text: going on
`).start(timed(soon)...)
	id := s.prompted()
	q := s.asks()
	s.update("Left pending. Answer it later with:")
	s.answer(3).stop(t, "end_turn")
	s.choose(q, "x")
	s.end()
	if strings.Contains(s.log(id), "user-question-reply") {
		t.Error("a part of a batch was sent")
	}
}

func TestWhatTheClientCannotShowIsLeftToTheCommand(t *testing.T) {
	for name, q := range map[string]string{
		"free text":    `{id: a, question: "Which name?"}`,
		"multi-select": `{id: a, question: "Which name?", multi_select: true, options: [{label: x}, {label: y}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "responses: [{tool_calls: [{id: q1, name: ask_user_question, arguments: {questions: ["+q+"]}}]}, {text: going on}]")
			s := w.start() // blocking: without a shell nobody ends it
			id := s.prompted()
			s.update("deepseek answer " + id + " q1 --home " + w.home)
			s.send(cancel(id))
			s.answer(3).stop(t, "cancelled")
			s.end()
			for _, m := range s.said {
				if m.Method == "session/request_permission" {
					t.Errorf("it was asked: %s", m.Params)
				}
			}
		})
	}
}

func TestDisconnectWithAnOpenQuestionLeavesItAnswerable(t *testing.T) {
	for _, mode := range [][]string{timed(600), timed(-1)} {
		t.Run(mode[3], func(t *testing.T) {
			w := newWorld(t, question)
			s := w.start(mode...)
			id := s.prompted()
			s.asks()
			s.hangUp()
			code, out, errs := w.command("answer", id, "q1", "--select", "port=9090", "--model", "script:"+w.script)
			if code != 0 || !strings.Contains(out, "going on") {
				t.Errorf("answer: %d %s %s", code, out, errs)
			}
			if out = w.questions(id); !strings.Contains(out, `"settled":[{"callId":"q1"`) {
				t.Errorf("questions: %s", out)
			}
		})
	}
}

func TestCancelledQuestionOfTimedModeStaysAnswerable(t *testing.T) {
	for _, mode := range [][]string{timed(600), timed(-1)} {
		t.Run(mode[3], func(t *testing.T) {
			w := newWorld(t, question)
			s := w.start(mode...)
			id := s.prompted()
			q := s.asks()
			// As the protocol wants it: the cancel, and then every request in hand as cancelled.
			s.send(cancel(id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`, q.ID))
			s.answer(3).stop(t, "cancelled")
			s.end()
			if out := w.questions(id); !strings.Contains(out, `"state":"continued"`) {
				t.Errorf("questions: %s", out)
			}
		})
	}
}

const writesOutside = `
responses:
  - tool_calls: [{id: w1, name: write, arguments: {file_path: ../out.txt, content: "x\n"}}]
  - text: going on
`

func TestApproval(t *testing.T) {
	for _, c := range []struct {
		name, reply string
		written     bool
	}{
		{"allowed", `"result":{"outcome":{"outcome":"selected","optionId":"allow"}}`, true},
		{"refused", `"result":{"outcome":{"outcome":"selected","optionId":"reject"}}`, false},
		{"closed", `"result":{"outcome":{"outcome":"cancelled"}}`, false},
		{"an option that was not offered", `"result":{"outcome":{"outcome":"selected","optionId":"allow-always"}}`, false},
		{"a client that cannot ask", `"error":{"code":-32601,"message":"Method not found"}`, false},
		{"an error of another shape", `"error":"no"`, false},
		{"nonsense", `"result":[1]`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, writesOutside)
			s := w.start()
			s.prompted()
			q := s.asks()
			if !strings.Contains(string(q.Params), `"toolCallId":"w1"`) || !strings.Contains(string(q.Params), `+x`) {
				t.Errorf("the approval: %s", q.Params)
			}
			s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, c.reply))
			s.answer(3).stop(t, "end_turn")
			s.end()
			_, err := os.Stat(filepath.Join(filepath.Dir(w.ws), "out.txt"))
			if written := err == nil; written != c.written {
				t.Errorf("written: %v, want %v", written, c.written)
			}
		})
	}
}

func TestAClientThatFailsOnAQuestionEndsItUnlessTimeDoes(t *testing.T) {
	for name, reply := range map[string]string{
		"an error":  `"error":{"code":-32603,"message":"boom"}`,
		"nothing":   `"result":null`,
		"no result": `"result":{"x":1}`,
		"a list":    `"result":[1]`,
	} {
		for what, script := range map[string]string{"buttons": question, "a form": formBatch} {
			for mode, args := range map[string][]string{"legacy": {"--mode", "legacy"}, "without a limit": timed(-1), "timed": timed(600)} {
				t.Run(name+", "+what+", "+mode, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, script)
					s := w.start(args...)
					id := s.promptedWith(forms, `[]`)
					q := s.expect("a question", func(m message) bool { return m.ID != nil && m.Method != "" })
					s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, q.ID, reply))
					if mode == "timed" {
						s.update("It stays open")
						s.send(cancel(id))
						s.answer(3).stop(t, "cancelled")
					} else {
						s.answer(3).stop(t, "end_turn")
					}
					s.end()
					if strings.Contains(s.log(id), "ASK_CANCELLED") == (mode == "timed") {
						t.Error("who ended the question: ", s.log(id))
					}
				})
			}
		}
	}
}

func TestAnOptionThatIsNoneIsNoAnswerAndIsSaid(t *testing.T) {
	s := newWorld(t, question).start(timed(-1)...)
	id := s.prompted()
	s.choose(s.asks(), "zzz")
	s.update(`The answer cannot be used: there is no option \"zzz\"`)
	s.send(cancel(id))
	s.answer(3).stop(t, "cancelled")
	s.end()
}

func TestDisconnectIsNoApproval(t *testing.T) {
	w := newWorld(t, writesOutside)
	s := w.start()
	s.prompted()
	s.asks()
	s.hangUp()
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.ws), "out.txt")); err == nil {
		t.Error("the file was written")
	}
}

func TestAnswererNoneAsksNobody(t *testing.T) {
	s := newWorld(t, writesOutside).start("--answerer", "none")
	s.prompted()
	s.answer(3).stop(t, "end_turn")
	s.end()
	for _, m := range s.said {
		if m.Method == "session/request_permission" {
			t.Errorf("it was asked: %s", m.Params)
		}
	}
}

func TestModeIsTheLevelFromTheNextDecisionOnAndOfALaterLoad(t *testing.T) {
	w := newWorld(t, `
responses:
  - tool_calls: [{name: write, arguments: {file_path: a.txt, content: "x\n"}}]
  - text: one
  - tool_calls: [{name: write, arguments: {file_path: ../out.txt, content: "x\n"}}]
  - text: two
`)
	s := w.start()
	id := s.begun()
	mode := func(n int, level string) message {
		s.send(request(n, "session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":%q}`, id, level)))
		return s.answer(n)
	}
	if m := mode(3, "read-only"); m.Error != nil {
		t.Fatalf("set_mode: %+v", m.Error)
	}
	s.send(prompt(4, id, "go"))
	s.update("this session is read-only")
	s.answer(4).stop(t, "end_turn")
	if m := mode(5, "everything"); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("a level that is none: %s %+v", m.Result, m.Error)
	}
	mode(6, "full-access")
	s.send(prompt(7, id, "go"))
	s.answer(7).stop(t, "end_turn")
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.ws), "out.txt")); err != nil {
		t.Error(err)
	}
	s.end()

	again := w.start()
	again.begun()
	again.send(request(3, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, w.ws)))
	if m := again.answer(3); !strings.Contains(string(m.Result), `"currentModeId":"full-access"`) {
		t.Errorf("load: %s %+v", m.Result, m.Error)
	}
	again.end()
}

func TestLoadTellsWhatHappenedAndWhatWaits(t *testing.T) {
	w := newWorld(t, question)
	s := w.start(timed(1)...)
	id := s.begun()
	s.send(prompt(3, id, "the task"))
	s.answer(3).stop(t, "end_turn")
	s.end()

	s = w.start()
	s.begun()
	params := fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, w.ws)
	s.send(request(3, "session/load", params))
	for _, want := range []string{"the task", `"toolCallId":"q1"`, "No answer yet", "going on", "deepseek answer " + id + " q1"} {
		s.update(want)
	}
	if m := s.answer(3); m.Error != nil {
		t.Fatalf("load: %+v", m.Error)
	}
	s.send(prompt(4, id, "more"))
	s.update("taken up")
	s.answer(4).stop(t, "end_turn")

	s.send(request(5, "session/load", params)) // again, in the same connection
	s.update("the task")
	s.answer(5)
	s.send(request(6, "session/close", `{"sessionId":"`+id+`"}`), prompt(7, id, "x"))
	if m := s.answer(6); m.Error != nil {
		t.Errorf("close: %+v", m.Error)
	}
	if m := s.answer(7); m.Error == nil || m.Error.Code != -32002 {
		t.Errorf("a prompt of a closed session: %s %+v", m.Result, m.Error)
	}
	if code, _, errs := w.command("answer", id, "q1", "--select", "port=8080", "--queue"); code != 0 {
		t.Errorf("the session is not free: %d %s", code, errs)
	}
	s.send(request(8, "session/list", fmt.Sprintf(`{"cwd":%q}`, w.ws)))
	var list struct {
		Sessions []struct{ SessionID, Title string }
	}
	if m := s.answer(8); json.Unmarshal(m.Result, &list) != nil || len(list.Sessions) != 1 || list.Sessions[0].Title != "the task" {
		t.Errorf("list: %s", m.Result)
	}
	s.end()
}

func TestSessionOfAnotherOwnerIsBusy(t *testing.T) {
	w := newWorld(t, question)
	one := w.start()
	id := one.begun()
	one.send(prompt(3, id, "go"))
	one.asks()
	two := w.start()
	two.begun()
	two.send(request(3, "session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, w.ws)))
	if m := two.answer(3); m.Error == nil || !strings.Contains(string(m.Error.Data), "SESSION_BUSY") {
		t.Errorf("load: %s %+v", m.Result, m.Error)
	}
	two.end()
	one.end()
}
