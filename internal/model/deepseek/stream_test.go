package deepseek

import (
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"deepseek/internal/model"
	"deepseek/internal/session"
)

const testKey = "sk-test-SECRETSECRET"

// play reads a body as an answer.
func play(body io.Reader) (model.Response, []model.Delta, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	a := New(Config{Key: testKey})
	w := startWatch(a.cfg.Clocks, cancel)
	defer w.stop()
	var deltas []model.Delta
	s := stream{adapter: a, watch: w, body: newLineReader(body, w), sink: func(d model.Delta) { deltas = append(deltas, d) }}
	res, err := s.read(ctx, ctx)
	return res, deltas, err
}

const done = "data: [DONE]\n\n"

// delta, tools and last are the usual chunks around a delta's JSON.
func delta(json string) string {
	return `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + json + `,"logprobs":null,"finish_reason":null}]}` + "\n\n"
}

func tools(json string) string { return delta(`{"tool_calls":` + json + `}`) }

func last(finish string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"` + finish + `"}]}` + "\n\n"
}

func text(s string) model.Response { return model.Response{Text: s, Finish: model.FinishStop} }

func calls(c ...session.Call) model.Response {
	return model.Response{Calls: c, Finish: model.FinishToolCalls}
}

func call(id, name, args string) session.Call {
	return session.Call{ID: id, Name: name, Arguments: args}
}

func withUsage(r model.Response, u session.Usage) model.Response {
	r.Usage = &u
	return r
}

func TestStream(t *testing.T) {
	long := strings.Repeat("0123456789", 200_000)
	for _, tt := range []struct {
		name string
		body string
		want model.Response
		code string // of the error, where one is wanted
		says string // in its message
	}{
		{name: "text", body: delta(`{"role":"assistant","content":""}`) + delta(`{"content":"he"}`) + delta(`{"content":"llo"}`) + last("stop") + done, want: text("hello")},
		{name: "reasoning comes with null content", body: delta(`{"content":null,"reasoning_content":"hm"}`) + delta(`{"content":"a","reasoning_content":null}`) + last("stop") + done, want: model.Response{Text: "a", Reasoning: "hm", Finish: model.FinishStop}},
		{name: "null content, empty reasoning and null usage first", body: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"finish_reason":null}],"usage":null}` + "\n\n" + delta(`{"content":"a"}`) + last("stop") + done, want: text("a")},
		{name: "CRLF, comments and other fields", body: ": keep-alive\r\n\r\n\r\nevent: message\r\nid: 7\r\nretry: 10\r\n" + strings.ReplaceAll(delta(`{"content":"é 你"}`), "\n", "\r\n") + ": x\n\n" + last("stop") + done, want: text("é 你")},
		{name: "lines that end in CR alone", body: strings.ReplaceAll(delta(`{"content":"a"}`)+last("stop")+done, "\n", "\r") + "\n", want: text("a")},
		{name: "a byte order mark", body: "\uFEFF" + delta(`{"content":"a"}`) + last("stop") + done, want: text("a")},
		{name: "a chunk over several data lines", body: "data: {\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"a\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n" + done, want: text("a")},
		{name: "chunks without blank lines between them", body: strings.ReplaceAll(delta(`{"content":"a"}`)+delta(`{"content":"b"}`)+last("stop"), "\n\n", "\n") + done, want: text("ab")},
		{name: "data without a space", body: "data:{\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata:[DONE]\n\n", want: text("a")},
		{name: "the end of the body ends the last event", body: delta(`{"content":"a"}`) + last("stop") + "data: [DONE]", want: text("a")},
		{name: "a line of two megabytes", body: delta(`{"content":"`+long+`"}`) + last("stop") + done, want: text(long)},
		{name: "what comes after finish is kept", body: delta(`{"content":"a"}`) + last("stop") + delta(`{"content":"b"}`) + done, want: text("ab")},
		{name: "what comes after DONE is not", body: delta(`{"content":"a"}`) + last("stop") + done + delta(`{"content":"b"}`) + "nonsense", want: text("a")},
		{name: "an empty finish reason is none", body: `data: {"choices":[{"delta":{"content":"a"},"finish_reason":""}]}` + "\n\n" + last("stop") + done, want: text("a")},
		{name: "other choices are ignored", body: `data: {"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + last("stop") + done, want: text("a")},

		{name: "a surrogate pair in one fragment", body: delta(`{"content":"\ud83d\ude00"}`) + last("stop") + done, want: text("😀")},
		{name: "a surrogate pair over two fragments", body: delta(`{"content":"a\ud83d"}`) + delta(`{"content":"\ude00b"}`) + last("stop") + done, want: text("a😀b")},
		{name: "lone surrogates", body: delta(`{"content":"a\ud83d"}`) + delta(`{"content":"b\ude00"}`) + delta(`{"content":"\ud83d"}`) + last("stop") + done, want: text("a\uFFFDb\uFFFD\uFFFD")},
		{name: "a rune split over two fragments", body: delta("{\"content\":\"\xe4\xbd\"}") + delta("{\"content\":\"\xa0!\"}") + last("stop") + done, want: text("你!")},
		{name: "text and reasoning are joined apart", body: delta("{\"content\":\"\xe4\xbd\",\"reasoning_content\":\"\xf0\x9f\"}") + delta("{\"content\":\"\xa0\",\"reasoning_content\":\"\x98\x80\"}") + last("stop") + done, want: model.Response{Text: "你", Reasoning: "😀", Finish: model.FinishStop}},
		{name: "bytes that are no UTF-8", body: delta("{\"content\":\"a\xffb\xe4\"}") + last("stop") + done, want: text("a\uFFFDb\uFFFD")},

		{name: "usage on the finish chunk", body: delta(`{"content":"a"}`) + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6,"completion_tokens_details":{"reasoning_tokens":2}}}` + "\n\n" + done, want: withUsage(text("a"), session.Usage{InputTokens: 6, CacheReadTokens: 4, OutputTokens: 3, ReasoningTokens: 2})},
		{name: "usage alone after the finish", body: delta(`{"content":"a"}`) + last("stop") + `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n" + done, want: withUsage(text("a"), session.Usage{InputTokens: 6, CacheReadTokens: 4, OutputTokens: 3})},
		{name: "usage first and last: the last counts, once", body: `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":10,"completion_tokens":0}}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":3}}` + "\n\n" + done, want: withUsage(text("a"), session.Usage{InputTokens: 10, OutputTokens: 3})},
		{name: "an empty usage is none", body: `data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":10,"completion_tokens":1}}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{}}` + "\n\n" + done, want: withUsage(text("a"), session.Usage{InputTokens: 10, OutputTokens: 1})},
		{name: "usage of odd types costs nothing but itself", body: delta(`{"content":"a"}`) + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":"10","completion_tokens":3.0,"prompt_tokens_details":[]}}` + "\n\n" + done, want: withUsage(text("a"), session.Usage{OutputTokens: 3})},

		{name: "a call", body: tools(`[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""}}]`) + tools(`[{"index":0,"function":{"arguments":"{\"a\""}}]`) + tools(`[{"index":0,"function":{"arguments":":1}"}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{"a":1}`))},
		{name: "finish stop with a call is a call", body: tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}]`) + last("stop") + done, want: calls(call("c1", "read", `{}`))},
		{name: "ids, names and types wiped later", body: tools(`[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{"}}]`) + tools(`[{"index":0,"id":"","type":"function","function":{"name":"","arguments":"\"a\":"}}]`) + tools(`[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"1}"}}]`) + tools(`[]`) + delta(`{"tool_calls":null}`) + last("tool_calls") + done, want: calls(call("c1", "read", `{"a":1}`))},
		{name: "id and name repeated in each fragment", body: tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{"}}]`) + tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"}"}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{}`))},
		{name: "two ids under one index are two calls", body: tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{"}}]`) + tools(`[{"index":0,"function":{"arguments":"}"}}]`) + tools(`[{"index":0,"id":"c2","function":{"name":"glob","arguments":"{"}}]`) + tools(`[{"index":0,"function":{"arguments":"\"b\":2}"}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{}`), call("c2", "glob", `{"b":2}`))},
		{name: "interleaved, with gaps, counted from one, out of order", body: tools(`[{"index":3,"id":"c3","function":{"name":"glob","arguments":"{\"x\":"}}]`) + tools(`[{"index":1,"id":"c1","function":{"name":"read","arguments":"{"}}]`) + tools(`[{"index":3,"function":{"arguments":"1}"}},{"index":1,"function":{"arguments":"}"}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{}`), call("c3", "glob", `{"x":1}`))},
		{name: "no index, ids", body: tools(`[{"id":"c1","function":{"name":"read","arguments":"{"}}]`) + tools(`[{"function":{"arguments":"}"}}]`) + tools(`[{"id":"c2","function":{"name":"read","arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{}`), call("c2", "read", `{}`))},
		{name: "neither index nor id", body: tools(`[{"function":{"name":"read","arguments":"{}"}},{"function":{"name":"read","arguments":""}}]`) + tools(`[{"function":{"name":"glob","arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("", "read", `{}`), call("", "read", ``), call("", "glob", `{}`))},
		{name: "empty and repeated ids are left to the caller", body: tools(`[{"index":0,"id":"","function":{"name":"read","arguments":"{}"}},{"index":1,"id":"c","function":{"name":"read","arguments":"{}"}},{"index":2,"id":"c","function":{"name":"read","arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("", "read", `{}`), call("c", "read", `{}`), call("c", "read", `{}`))},
		{name: "one index, no ids, whole calls", body: tools(`[{"index":0,"function":{"name":"read","arguments":"{\"a\":0}"}}]`) + tools(`[{"index":0,"function":{"name":"read","arguments":"{\"a\":1}"}}]`) + tools(`[{"index":0,"id":"","function":{"name":"glob","arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("", "read", `{"a":0}`), call("", "read", `{"a":1}`), call("", "glob", `{}`))},
		{name: "one index, no ids, calls in pieces", body: tools(`[{"index":0,"function":{"name":"read","arguments":""}}]`) + tools(`[{"index":0,"function":{"arguments":"{}"}}]`) + tools(`[{"index":0,"function":{"name":"glob","arguments":""}}]`) + tools(`[{"index":0,"function":{"arguments":"{\"b\""}}]`) + tools(`[{"index":0,"function":{"arguments":":2}"}}]`) + last("tool_calls") + done, want: calls(call("", "read", `{}`), call("", "glob", `{"b":2}`))},
		{name: "one index, one id, two calls", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":0}"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"1}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a":0}`), call("z", "read", `{"a":1}`))},
		{name: "no index, one id, two calls", body: tools(`[{"id":"z","function":{"name":"read","arguments":"{\"a\":0}"}}]`) + tools(`[{"id":"z","function":{"name":"read","arguments":"{\"a\":1}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a":0}`), call("z", "read", `{"a":1}`))},
		{name: "a whole call said twice is one", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":0}"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":0}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a":0}`))},
		{name: "a name behind whole arguments begins nothing by itself", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{}"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":" \n"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", "{} \n"))},
		{name: "objects without a name of their own are malformed", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{}"}}]`) + tools(`[{"index":0,"function":{"arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", "{}{}"))},
		{name: "braces within a string, name in each fragment", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":\"{}"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{}\"}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a":"{}{}"}`))},
		{name: "each fragment is all there is so far", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":""}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\""}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":1"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":1}"}}]`) + tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":1}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a":1}`))},
		{name: "each fragment is all there is so far, without id and name, two calls", body: tools(`[{"index":0,"id":"y","function":{"name":"read","arguments":"{\"a"}},{"index":1,"id":"z","function":{"name":"glob","arguments":"{"}}]`) + tools(`[{"index":0,"function":{"arguments":"{\"a\":\"é\"}"}},{"index":1,"function":{"arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("y", "read", `{"a":"é"}`), call("z", "glob", `{}`))},
		{name: "fragments that begin alike and join to an object", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a\":"}}]`) + tools(`[{"index":0,"function":{"arguments":"{\"a\":1}"}}]`) + tools(`[{"index":0,"function":{"arguments":"}"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a":{"a":1}}`))},
		{name: "fragments that begin alike and end nowhere", body: tools(`[{"index":0,"id":"z","function":{"name":"read","arguments":"{\"a"}}]`) + tools(`[{"index":0,"function":{"arguments":"{\"a\":"}}]`) + last("tool_calls") + done, want: calls(call("z", "read", `{"a{"a":`))},
		{name: "an id of its own for each fragment", body: tools(`[{"index":0,"id":"z1","function":{"name":"read","arguments":"{\"a"}}]`) + tools(`[{"index":0,"id":"z2","function":{"arguments":"\":"}}]`) + tools(`[{"index":0,"id":"z3","function":{"name":null,"arguments":"1}"}}]`) + tools(`[{"index":0,"id":"y1","function":{"name":"glob","arguments":""}}]`) + tools(`[{"index":0,"id":"y2","function":{"arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("z1", "read", `{"a":1}`), call("y1", "glob", `{}`))},
		{name: "an id of its own for each fragment, no index", body: tools(`[{"id":"z1","function":{"name":"read","arguments":"{\"a"}}]`) + tools(`[{"id":"z2","function":{"arguments":"\":1}"}}]`) + tools(`[{"id":"y1","function":{"name":"glob","arguments":"{}"}}]`) + last("tool_calls") + done, want: calls(call("z1", "read", `{"a":1}`), call("y1", "glob", `{}`))},
		{name: "arguments as an object", body: tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":{"a": [1]}}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{"a": [1]}`))},
		{name: "malformed arguments come as they are", body: tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{\"a\":"}}]`) + last("tool_calls") + done, want: calls(call("c1", "read", `{"a":`))},
		{name: "finish tool_calls without one, but with text", body: delta(`{"content":"a"}`) + last("tool_calls") + done, want: text("a")},
		{name: "length drops calls", body: delta(`{"content":"a"}`) + tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}]`) + last("length") + done, want: model.Response{Text: "a", Finish: model.FinishLength}},
		{name: "a later length drops calls too", body: tools(`[{"index":0,"id":"c1","function":{"name":"write","arguments":"{}"}}]`) + last("tool_calls") + last("length") + done, want: model.Response{Finish: model.FinishLength}},
		{name: "a later stop takes no length back", body: tools(`[{"index":0,"id":"c1","function":{"name":"write","arguments":"{}"}}]`) + last("length") + last("stop") + done, want: model.Response{Finish: model.FinishLength}},
		{name: "a later filter counts", body: delta(`{"content":"a"}`) + last("stop") + last("content_filter") + done, code: "content_filter"},
		{name: "length before any text", body: delta(`{"reasoning_content":"hm"}`) + last("length") + done, want: model.Response{Reasoning: "hm", Finish: model.FinishLength}},

		{name: "no DONE", body: delta(`{"content":"a"}`) + last("stop"), code: model.CodeStreamClosed},
		{name: "calls without DONE do not run", body: tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}}]`) + last("tool_calls"), code: model.CodeStreamClosed},
		{name: "cut in the middle of a chunk", body: delta(`{"content":"a"}`) + `data: {"choices":[{"index":0,"del`, code: model.CodeStreamClosed},
		{name: "cut in the middle of DONE", body: delta(`{"content":"a"}`) + last("stop") + `data: [DON`, code: model.CodeStreamClosed},
		{name: "cut in the middle of a field's name", body: delta(`{"content":"a"}`) + `dat`, code: model.CodeStreamClosed},
		{name: "an empty answer", body: "", code: model.CodeStreamClosed},
		{name: "keep-alives alone", body: strings.Repeat(": keep-alive\n\n", 1000), code: model.CodeStreamClosed},
		{name: "DONE alone", body: done, code: model.CodeMalformed},
		{name: "no finish reason", body: delta(`{"content":"a"}`) + done, code: model.CodeMalformed},
		{name: "stop without anything", body: delta(`{"role":"assistant","content":""}`) + last("stop") + done, code: model.CodeEmptyResponse},
		{name: "reasoning alone is empty", body: delta(`{"reasoning_content":"hm"}`) + last("stop") + done, code: model.CodeEmptyResponse},
		{name: "content filter", body: delta(`{"content":"a"}`) + last("content_filter") + done, code: "content_filter"},
		{name: "insufficient resources", body: last("insufficient_system_resource") + done, code: "insufficient_system_resource"},
		{name: "an unknown reason", body: delta(`{"content":"a"}`) + last("eos") + done, code: "eos"},
		{name: "broken JSON", body: delta(`{"content":"a"}`) + "data: {\"choices\":[}\n\n" + last("stop") + done, code: model.CodeMalformed},
		{name: "content of a wrong type", body: delta(`{"content":["a"]}`) + last("stop") + done, code: model.CodeMalformed, says: "content"},
		{name: "an error in the stream", body: delta(`{"content":"a"}`) + `data: {"error":{"message":"Server overloaded","type":"server_error"}}` + "\n\n", code: model.CodeServer, says: "Server overloaded"},
		{name: "an error with a status", body: `data: {"error":{"message":"slow down","code":429}}` + "\n\n" + done, code: model.CodeRateLimit},
		{name: "an error about the balance", body: `data: {"error":{"message":"Insufficient Balance"}}` + "\n\n", code: model.CodeQuota},
		{name: "an error about the window", body: `data: {"error":"This model's maximum context length is 10 tokens"}` + "\n\n", code: model.CodeContextWindow},
		{name: "an error object in another dress", body: `data: {"object":"error","message":"bad","type":"BadRequestError","code":400}` + "\n\n", code: model.CodeInvalidRequest, says: "bad"},
		{name: "an error without a message", body: `data: {"error":{"message":"","code":"503"}}` + "\n\n", code: model.CodeServer, says: "503"},
		{name: "an error that is none", body: `data: {"error":"","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n" + done, want: text("a")},
		{name: "an event of type error", body: "event: error\ndata: rate limit reached\n\n", code: model.CodeRateLimit},
		{name: "plain words as data", body: "data: upstream timed out\n\n" + done, code: model.CodeTimeout},
		{name: "a plain line in the middle", body: delta(`{"content":"a"}`) + "upstream connect error\n", code: model.CodeServer, says: "upstream connect error"},
		{name: "a plain line alone", body: "Too many requests, slow down", code: model.CodeRateLimit, says: "slow down"},
		{name: "an error body with status 200", body: `{"error":{"message":"invalid api key","type":"authentication_error"}}`, code: model.CodeAuth},
		{name: "JSON that is no stream", body: `{"object":"chat.completion","choices":[{"message":{"content":"a"}}]}`, code: model.CodeMalformed, says: "instead of a stream"},
		{name: "a web page", body: "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body>" + strings.Repeat("<p>x</p>\n", 2000) + "</body></html>", code: model.CodeMalformed, says: "Sign in"},
		{name: "bytes that are no text", body: "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xfe\x01", code: model.CodeServer, says: "bytes that are no text"},
		{name: "the key is never shown", body: `data: {"error":{"message":"bad key ` + testKey + `"}}` + "\n\n", code: model.CodeServer, says: "bad key [key]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, body := range map[string]io.Reader{
				"whole":        strings.NewReader(tt.body),
				"with the end": iotest.DataErrReader(strings.NewReader(tt.body)),
				"halves":       iotest.HalfReader(strings.NewReader(tt.body)),
				"bytes":        iotest.OneByteReader(strings.NewReader(tt.body)),
			} {
				if how == "bytes" && len(tt.body) > 1<<20 {
					continue // takes long under the race detector
				}
				got, deltas, err := play(body)
				if tt.code != "" {
					var e *model.Error
					if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Message, tt.says) || strings.Contains(e.Message, testKey) {
						t.Errorf("%s: got error %v, want %s with %q", how, err, tt.code, tt.says)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", how, err)
					continue
				}
				if !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s: got\n%.500v\nwant\n%.500v", how, got, tt.want)
				}
				checkDeltas(t, got, deltas)
			}
		})
	}
}

// checkDeltas holds the deltas to adding up to the answer.
func checkDeltas(t *testing.T, got model.Response, deltas []model.Delta) {
	t.Helper()
	sum := map[string]string{}
	for _, d := range deltas {
		if d.Text == "" {
			t.Error("an empty delta")
		}
		if len(deltas) < 100 {
			sum[d.Kind] += d.Text
		}
	}
	if len(deltas) < 100 && (sum[session.BlockText] != got.Text || sum[session.BlockReasoning] != got.Reasoning) {
		t.Errorf("deltas add up to %.200v, the answer is %.200v", sum, got)
	}
}

func TestEndlessEventIsBounded(t *testing.T) {
	_, _, err := play(io.LimitReader(endless{}, maxEvent+1<<20))
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.CodeMalformed {
		t.Fatalf("got %v", err)
	}
}

// endless is one line without an end.
type endless struct{}

var blank = make([]byte, 4<<10)

func (endless) Read(p []byte) (int, error) { return copy(p, blank), nil }
