package deepseek

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"deepseek/internal/model"
)

// pieced reads a text in random small pieces.
type pieced struct {
	s   string
	rnd *rand.Rand
}

func (p *pieced) Read(b []byte) (int, error) {
	if p.s == "" {
		return 0, io.EOF
	}
	n := copy(b, p.s[:min(len(p.s), 1+p.rnd.IntN(40))])
	p.s = p.s[n:]
	return n, nil
}

// FuzzStream: any body gives the same outcome however it is cut into reads,
// never panics, and leaves only valid UTF-8 behind.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		delta(`{"content":"a\ud83d"}`) + delta("{\"content\":\"\\ude00\xe4\"}") + last("stop") + done,
		tools(`[{"index":0,"id":"c1","function":{"name":"read","arguments":"{}"}},{"function":{"name":"x","arguments":{"a":1}}}]`) + last("tool_calls") + done,
		": c\r\n\r\nevent: x\r\ndata: [DONE]\r\n\r\n",
		`data: {"error":{"message":"m","code":"429"}}` + "\n\n",
		"<html><title>t</title>", "plain words\n", "data: {\"a\n", "data: x\n\ndat", done + done,
	} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, body string, seed uint64) {
		want, deltas, wantErr := play(strings.NewReader(body))
		got, _, err := play(&pieced{body, rand.New(rand.NewPCG(seed, 0))})
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
			t.Fatalf("whole: %+v, %v\nin pieces: %+v, %v", want, wantErr, got, err)
		}
		if wantErr != nil {
			var e *model.Error
			if !errors.As(wantErr, &e) || !utf8.ValidString(e.Message) || !reflect.DeepEqual(want, model.Response{}) {
				t.Fatalf("%+v, %v", want, wantErr)
			}
			return
		}
		checkDeltas(t, got, deltas)
		for _, c := range want.Calls {
			want.Text += c.ID + c.Name + c.Arguments
		}
		if !utf8.ValidString(want.Text + want.Reasoning) {
			t.Fatalf("not UTF-8: %+v", want)
		}
	})
}

// FuzzDecodeFast: what the fast decoder accepts, the full one reads the same.
func FuzzDecodeFast(f *testing.F) {
	for _, s := range usualChunks {
		f.Add(s)
	}
	f.Add(`{"choices":[{"index":0,"delta":{"content":"x"},"delta":{"content":null}}]}`)
	f.Add(`{"choices":[{"index":0,"delta":{"Content":"x"}}]}`)
	f.Fuzz(func(t *testing.T, data string) { sameDecoding(t, data) })
}

func sameDecoding(t *testing.T, data string) (fast bool) {
	t.Helper()
	var quick chunk
	if !decodeFast(data, &quick) {
		return false
	}
	full, err := decodeFull(data)
	if err != nil {
		t.Fatalf("%q: fast reads %+v, full says %v", data, quick, err)
	}
	if !reflect.DeepEqual(quick, full) {
		t.Fatalf("%q:\nfast %+v\nfull %+v", data, quick, full)
	}
	return true
}

// usualChunks must take the fast path, for the speed of a stream hangs on it.
var usualChunks = []string{
	`{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","choices":[{"index":0,"delta":{"content":"x"},"logprobs":null,"finish_reason":null}]}`,
	`{"id": "r", "created": 1.5e3, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": null}], "usage": null}`,
	`{"choices":[{"delta":{"content":null,"reasoning_content":"a \"b\" \u4f60\ud83d\ude00\n"}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c","type":"function","function":{"name":"read","arguments":"{\"a\":"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":null,"function":{"name":null,"arguments":"x"}},{"function":{"arguments":"é"}}]}}]}`,
	`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
}

// TestFastDecoderAgrees mutates the usual chunks at random, so that the two
// decoders are compared also where no fuzzer runs.
func TestFastDecoderAgrees(t *testing.T) {
	for _, s := range usualChunks {
		if !sameDecoding(t, s) {
			t.Errorf("the fast decoder does not read %s", s)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	const letters = `{}[]":,\u0dDn0123-+.eE ntf` + "\x00\xe4\xbd\xa0\t"
	tried, read := 0, 0
	for range 50_000 {
		b := []byte(usualChunks[rnd.IntN(len(usualChunks))])
		for range 1 + rnd.IntN(3) {
			i := rnd.IntN(len(b))
			switch rnd.IntN(3) {
			case 0:
				b[i] = letters[rnd.IntN(len(letters))]
			case 1:
				b = append(b[:i], b[i+1:]...)
			case 2:
				j := i + rnd.IntN(len(b)-i)
				b = append(b[:j:j], b[i:]...)
			}
		}
		tried++
		if sameDecoding(t, string(b)) {
			read++
		}
	}
	if read < tried/20 {
		t.Errorf("only %d of %d mutants were read by the fast decoder: the test compares too little", read, tried)
	}
}

// TestJoinerAgreesWithWholeText: however WTF-8 is cut, the joined text is the
// one of the whole.
func TestJoinerAgreesWithWholeText(t *testing.T) {
	parts := []string{"a", "é", "你", "😀", "\xed\xa0\xbd", "\xed\xb8\x80", "\xff", "\xe4\xbd", "\xf0\x9f", "\xed", "\uFFFD"}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		var whole string
		for range rnd.IntN(6) {
			whole += parts[rnd.IntN(len(parts))]
		}
		var one, many joiner
		want := one.add(whole) + one.end()
		got := ""
		for rest := whole; rest != ""; {
			n := 1 + rnd.IntN(len(rest))
			got += many.add(rest[:n])
			rest = rest[n:]
		}
		got += many.end()
		if got != want || !utf8.ValidString(got) {
			t.Fatalf("%q: whole %q, in pieces %q", whole, want, got)
		}
	}
}
