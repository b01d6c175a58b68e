package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/question"
)

// pipe serves a host at one end of a pipe and returns the other. done is closed
// when nothing of the connection is left.
func pipe(h Host, lim limits) (client net.Conn, done chan struct{}) {
	client, server := net.Pipe()
	done = make(chan struct{})
	c := newConn(server, nil, lim, slog.New(slog.DiscardHandler))
	go func() {
		defer close(done)
		c.serve(context.Background(), h, ServerInfo{}, func() bool { return false })
	}()
	return client, done
}

// exchange sends input, then the end of it, and returns everything that came back.
func exchange(t testing.TB, h Host, lim limits, input string) []string {
	t.Helper()
	r, w := io.Pipe()
	var out bytes.Buffer
	c := newConn(&halves{r: r, w: &out}, nil, lim, slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.serve(context.Background(), h, ServerInfo{}, func() bool { return false })
	}()
	if _, err := io.WriteString(w, input); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// halves is a stream of a reader and a writer.
type halves struct {
	r *io.PipeReader
	w io.Writer
}

func (h *halves) Read(p []byte) (int, error)       { return h.r.Read(p) }
func (h *halves) Write(p []byte) (int, error)      { return h.w.Write(p) }
func (h *halves) Close() error                     { return h.r.Close() }
func (h *halves) SetWriteDeadline(time.Time) error { return nil }

func TestLines(t *testing.T) {
	steer := func(id, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/steer","params":{"contentBlocks":[{"type":"text","text":%q}]}}`, id, text)
	}
	lim := socketLimits
	lim.line, lim.silence = 1000, 0
	for _, tt := range []struct{ name, input, want, calls string }{
		{"nothing", "", "", ""},
		{"blank lines are passed over", "\n \r\n", "", ""},
		{"ids are strings or numbers", steer("7", "a") + "\n" + steer(`"x"`, "b") + "\n", "7 ok; x ok", "steer a;steer b"},
		{"garbage, and the stream goes on", "oops\n" + steer("1", "a") + "\n", "null -32700; 1 ok", "steer a"},
		{"bytes that are no UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n", "null -32700", ""},
		{"a value that is no object", "42\n", "null -32600", ""},
		{"a batch", "[" + steer("1", "a") + "]\n" + steer("2", "b") + "\n", "null -32600; 2 ok", "steer b"},
		{"a line that is too long, and the stream goes on", steer("1", strings.Repeat("x", 1000)) + "\n" + steer("2", "b") + "\n", "1 -32600; 2 ok", "steer b"},
		{"a line that is too long and names itself behind that", `{"params":{"x":"` + strings.Repeat("x", 1000) + `"},"id":1}` + "\n" + steer("2", "b") + "\n", "null -32600; 2 ok", "steer b"},
		{"a line that is too long in its id", `{"id":1` + strings.Repeat("1", 2*beginning) + "}\n", "null -32600", ""},
		{"a line that is too long without an id", `{"jsonrpc":"2.0","method":"ping","x":"` + strings.Repeat("x", 1000) + "\"}\n", "null -32600", ""},
		{"an id that is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}` + "\n", "null -32600", ""},
		{"an id that is a boolean", `{"jsonrpc":"2.0","id":true,"method":"ping"}` + "\n", "null -32600", ""},
		{"a method that is no string", `{"jsonrpc":"2.0","id":1,"method":5}` + "\n", "1 -32600", ""},
		{"a method that is no string, and no id", `{"jsonrpc":"2.0","method":5}` + "\n", "null -32600", ""},
		{"no method", `{"jsonrpc":"2.0","id":"x"}` + "\n", "x -32600", ""},
		{"no version", `{"id":1,"method":"ping"}` + "\n", "1 -32600", ""},
		{"a version that is no string", `{"jsonrpc":2.0,"id":1,"method":"ping"}` + "\n", "1 -32600", ""},
		{"parameters that are neither an object nor an array", `{"jsonrpc":"2.0","id":1,"method":"ping","params":3}` + "\n", "1 -32602", ""},
		{"parameters of that kind to an unknown method", `{"jsonrpc":"2.0","id":1,"method":"nope","params":"x"}` + "\n", "1 -32601", ""},
		{"parameters that are null are none", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}` + "\n", "1 ok", ""},
		{"an empty object", "{}\n", "null -32600", ""},
		{"names are exact", `{"jsonrpc":"2.0","ID":1,"Method":"ping"}` + "\n", "null -32600", ""},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n", "1 -32600", ""},
		{"a key too many", `{"jsonrpc":"2.0","id":1,"method":"ping","x":1}` + "\n", "1 -32600", ""},
		{"an id that is neither", `{"jsonrpc":"2.0","id":{},"method":"ping"}` + "\n", "null -32600", ""},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"shutdown"}` + "\n", "1 -32601", ""},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":1,"result":1}` + "\n", "1 -32600", ""},
		{"requests without an id take effect in order and have no answer", strings.Replace(steer("1", "a"), `"id":1,`, "", 1) + "\n" + steer("2", "b") + "\n", "2 ok", "steer a;steer b"},
		{"the same id again", steer("1", "a") + "\n" + steer("1", "b") + "\n", "1 ok; 1 ok", "steer a;steer b"},
		{"a last line that is cut has no effect", steer("1", "a") + "\n" + steer("2", "b"), "1 ok", "steer a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			h := newHost()
			var got []string
			for _, line := range exchange(t, h, lim, tt.input) {
				var m struct {
					ID    any
					Error *struct{ Code int }
				}
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				id, res := "null", "ok"
				if m.ID != nil {
					id = fmt.Sprint(m.ID)
				}
				if m.Error != nil {
					res = fmt.Sprint(m.Error.Code)
				}
				got = append(got, id+" "+res)
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("answered %q, want %q", s, tt.want)
			}
			if s := strings.Join(h.recorded(), ";"); s != tt.calls {
				t.Errorf("the host was asked for %q, want %q", s, tt.calls)
			}
		})
	}
}

func TestALastLineWithoutItsEndCountsOnStdio(t *testing.T) {
	l := newLineReader(strings.NewReader("a\nb"), socketLimits, false)
	l.run()
	var got []string
	for {
		line, ok, err := l.take()
		if !ok {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		got = append(got, string(line.text))
	}
	if strings.Join(got, ",") != "a,b" {
		t.Errorf("lines %q", got)
	}
}

func TestTheEndOfTheInputWaitsForTheOpenCall(t *testing.T) {
	h := newHost()
	h.hold = make(chan struct{})
	go func() { <-h.held; close(h.hold) }()
	out := exchange(t, h, socketLimits, `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"contentBlocks":[{"type":"text","text":"a"}]}}`+"\n")
	if len(out) != 1 || !strings.Contains(out[0], `"messageId":"m-a"`) {
		t.Errorf("answered %q", out)
	}
}

func TestSilenceReleasesClaimsAfter15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		w := h.open("c1", question.KindQuestion, time.Hour)
		conn, done := pipe(h, socketLimits)
		in := bufio.NewReader(conn)
		began := time.Now()
		if _, err := io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"questions/attachWait","params":{"callId":"c1"}}`+"\n"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"attached":true`, `"remainingMs":3600000`} {
			if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, want) {
				t.Fatalf("got %q %v, want %s", line, err, want)
			}
		}
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if w.held() != 1 {
			t.Error("the claim was released too early")
		}
		line, err := in.ReadString('\n')
		if d := time.Since(began); d != 15*time.Second || w.held() != 0 {
			t.Errorf("ended after %v with %d claims", d, w.held())
		}
		if err != nil || !strings.Contains(line, `"id":null`) || !strings.Contains(line, CodeClientSilent) {
			t.Errorf("the last line is %q %v", line, err)
		}
		<-done
		if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is %v", err)
		}
	})
}

func TestASilentClientThatDoesNotReadIsLeftToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, done := pipe(newHost(), socketLimits)
		began := time.Now()
		<-done
		if d := time.Since(began); d > socketLimits.silence+socketLimits.flush {
			t.Errorf("ended after %v", d)
		}
	})
}

func TestAClientThatPingsKeepsItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		w := h.open("c1", question.KindQuestion, time.Hour)
		conn, done := pipe(h, socketLimits)
		c := newClient(t.Context(), conn)
		if _, _, err := c.Desk("c1").Attach(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if w.held() != 1 {
			t.Error("the claim was released")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-done
		if w.held() != 0 {
			t.Error("the claim stayed")
		}
	})
}

// A request may take long. Its client pings meanwhile, which nobody answers yet.
func TestAClientIsNotSilentWhileItsRequestIsInHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.hold = make(chan struct{})
		conn, done := pipe(h, socketLimits)
		c := newClient(t.Context(), conn)
		go func() { time.Sleep(2 * time.Minute); close(h.hold) }()
		if id, err := c.Prompt(context.Background(), text("a")); err != nil || id != "m-a" {
			t.Errorf("prompt: %q %v", id, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
}

func TestASubscriberThatDoesNotReadIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		lim := socketLimits
		lim.queue = 4 << 10
		conn, done := pipe(h, lim)
		in := bufio.NewReader(conn)
		if _, err := io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"session/read"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		go func() { // it pings, but does not read
			for {
				if _, err := io.WriteString(conn, `{"jsonrpc":"2.0","method":"ping"}`+"\n"); err != nil {
					close(stop)
					return
				}
				time.Sleep(pingEvery)
			}
		}()
		began := time.Now()
		for range 1000 {
			h.log("session/title", map[string]string{"title": "a title"})
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the session was slowed by %v", d)
		}
		<-done
		if d := time.Since(began); d < lim.stall || d > lim.stall+2*time.Second+lim.flush {
			t.Errorf("dropped after %v", d)
		}
		<-stop
	})
}

func TestADroppedClientThatReadsAgainIsToldWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := net.Pipe()
		lim := limits{queue: 10, stall: time.Second}
		o := newOutbox(lim, nil)
		ended := make(chan error, 1)
		go func() { ended <- o.run(w); _ = w.Close() }()
		if err := o.pushWait(t.Context(), []byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it is being written
		if err := o.pushWait(t.Context(), []byte("x")); !errors.Is(err, errTooSlow) {
			t.Fatalf("got %v", err)
		}
		all, err := io.ReadAll(r)
		if err != nil || <-ended != nil {
			t.Fatal(err)
		}
		if s := string(all); !strings.HasPrefix(s, "0123456789\n{") || !strings.Contains(s, CodeClientTooSlow) {
			t.Errorf("it read %q", s)
		}
		if err := o.push([]byte("x")); !errors.Is(err, errTooSlow) {
			t.Errorf("push: %v", err)
		}
	})
}

// Slow is not dead: who reads a little now and then is waited for.
func TestASlowReaderGetsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := net.Pipe()
		o := newOutbox(limits{queue: 200 << 10, stall: 15 * time.Second}, nil)
		go func() { _ = o.run(w); _ = w.Close() }()
		go func() {
			for i := range 50 {
				if err := o.pushWait(t.Context(), fmt.Appendf(nil, "%050000d", i)); err != nil {
					t.Error(err)
					return
				}
			}
			o.finish()
		}()
		in := bufio.NewScanner(r)
		n := 0
		for in.Scan() {
			if want := fmt.Sprintf("%050000d", n); in.Text() != want {
				t.Fatalf("line %d is %.100s", n, in.Text())
			}
			n++
			time.Sleep(10 * time.Second)
		}
		if n != 50 {
			t.Errorf("%d lines", n)
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
	f.Add([]byte("[]\n{}\n\n42\nnull\n\xff\n{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"session/read","params":{"fromSeq":0}}` + "\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1.5,"method":"questions/respond","params":{"callId":"c","answers":[]}}` + "\n"))
	lim := socketLimits
	lim.line, lim.ahead, lim.silence = 200, 100, 0
	ping := "{\"jsonrpc\":\"2.0\",\"id\":\"last one\",\"method\":\"ping\"}\n"
	f.Fuzz(func(t *testing.T, input []byte) {
		// Whatever comes, each line has at most one answer, all of them are JSON
		// lines, and the request behind it is answered, last.
		out := exchange(t, newHost(), lim, string(input)+"\n"+ping)
		var answers []string
		for _, line := range out {
			if !json.Valid([]byte(line)) {
				t.Fatalf("not JSON: %q", line)
			}
			if strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`) {
				answers = append(answers, line)
			}
		}
		if n := bytes.Count(input, []byte("\n")) + 2; len(answers) == 0 || len(answers) > n {
			t.Fatalf("%d answers to %d lines: %q", len(answers), n, out)
		}
		if want := `{"jsonrpc":"2.0","id":"last one","result":{}}`; answers[len(answers)-1] != want {
			t.Fatalf("the last answer is %s", answers[len(answers)-1])
		}
	})
}
