package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// A caller has to know whether a request that failed may have had an effect.
func TestAFailedCallSaysWhetherItWasDelivered(t *testing.T) {
	readLine := func(t *testing.T, c net.Conn) {
		if _, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil {
			t.Error(err)
		}
	}
	for _, tt := range []struct {
		name  string
		serve func(t *testing.T, c net.Conn)
		want  error
		code  string
		prose string
	}{
		{"the owner was gone before", func(_ *testing.T, c net.Conn) { _ = c.Close() }, ErrNotDelivered, "", ""},
		{"the owner went in the middle of the line", func(_ *testing.T, c net.Conn) { _, _ = c.Read(make([]byte, 5)); _ = c.Close() }, ErrNotDelivered, "", ""},
		{"the owner went after the line", func(t *testing.T, c net.Conn) { readLine(t, c); _ = c.Close() }, ErrLost, "", "EOF"},
		{"the owner does not answer", func(t *testing.T, c net.Conn) { readLine(t, c) }, ErrLost, "", "deadline"},
		{"the owner does not read", func(*testing.T, net.Conn) {}, ErrNotDelivered, "", "deadline"},
		{"the owner did not let us in", func(_ *testing.T, c net.Conn) {
			_, _ = c.Write(append(errorLine(nil, wire(refuse(CodeCallerIsTool, "no"))), '\n'))
			_ = c.Close()
		}, nil, CodeCallerIsTool, ""},
		{"the owner dropped us", func(t *testing.T, c net.Conn) {
			readLine(t, c)
			_, _ = c.Write(append(errorLine(nil, wire(errTooSlow)), '\n'))
			_ = c.Close()
		}, ErrLost, CodeClientTooSlow, ""},
		{"the owner refused", func(t *testing.T, c net.Conn) {
			readLine(t, c)
			_, _ = io.WriteString(c, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"m","data":{"code":"OWNER_LEAVING"}}}`+"\n")
		}, nil, CodeOwnerLeaving, ""},
		{"the owner talks nonsense", func(t *testing.T, c net.Conn) {
			readLine(t, c)
			_, _ = io.WriteString(c, "hello\n")
		}, ErrLost, "", "not understood"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				c := newClient(t.Context(), near)
				served := make(chan struct{})
				go func() { defer close(served); tt.serve(t, far) }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := c.Prompt(ctx, text("a"))
				<-served
				if tt.want != nil && !errors.Is(err, tt.want) {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if tt.want == nil && (errors.Is(err, ErrLost) || errors.Is(err, ErrNotDelivered)) {
					t.Errorf("got %v", err)
				}
				var refused *Error
				if tt.code != "" && (!errors.As(err, &refused) || refused.Code != tt.code) {
					t.Errorf("got %v, want %s", err, tt.code)
				}
				if !strings.Contains(fmt.Sprint(err), tt.prose) {
					t.Errorf("got %v, want %q in it", err, tt.prose)
				}
				_ = far.Close()
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestWhatTheOwnerSaysGoesThroughRedact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := newClient(t.Context(), near, WithRedact(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("sk-secret"), []byte("[key]")) }))
		go func() {
			_, _ = far.Read(make([]byte, 1024))
			_, _ = io.WriteString(far, `{"jsonrpc":"2.0","id":1,"result":{"active":[{"callId":"q","questions":[{"id":"a","question":"use sk-secret?"}]}]}}`+"\n")
		}()
		list, err := c.Questions(t.Context())
		if err != nil || list.Active[0].Questions[0].Question != "use [key]?" {
			t.Errorf("got %+v, %v", list, err)
		}
		_ = far.Close()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAGivenUpAttachLeavesNoClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		w := h.open("c1", question.KindQuestion, time.Hour)
		h.hold = make(chan struct{})
		conn, done := pipe(h, socketLimits)
		c := newClient(t.Context(), conn)
		go func() { _, _ = c.Prompt(t.Context(), text("a")) }() // the attach waits behind it
		<-h.held
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Desk("c1").Attach(ctx); !errors.Is(err, ErrLost) {
			t.Errorf("attach: %v", err)
		}
		close(h.hold)
		synctest.Wait()
		if w.held() != 0 {
			t.Error("a claim stayed")
		}
		_ = c.Close()
		<-done
	})
}

func TestADeskIsToldOfALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		h.open("c1", question.KindQuestion, time.Hour)
		conn, done := pipe(h, socketLimits)
		c := newClient(t.Context(), conn)
		d := c.Desk("c1")
		if _, _, err := d.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Desk("c1").Attach(t.Context()); !errors.Is(err, ErrNotDelivered) {
			t.Errorf("a second desk for the call: %v", err)
		}
		_ = conn.Close()
		if e, ok := <-d.Ended(); ok {
			t.Errorf("told %+v", e)
		}
		<-c.Done()
		if _, err := d.Respond(t.Context(), []session.Answer{{ID: "q", Selected: []string{}}}); !errors.Is(err, ErrNotDelivered) {
			t.Errorf("respond: %v", err)
		}
		if err := d.Detach(t.Context()); err != nil {
			t.Errorf("detach: %v", err)
		}
		if _, _, err := d.Attach(t.Context()); !errors.Is(err, ErrNotDelivered) {
			t.Errorf("attach: %v", err)
		}
		_ = c.Close()
		<-done
	})
}

func TestStateOfAQuestion(t *testing.T) {
	h := newHost()
	o := serveHost(t, h)
	h.open("c1", question.KindQuestion, time.Hour)
	c := o.dial(t)
	for call, want := range map[string]string{"c1": StateOpen, "c2": StateRemoved} {
		if st, err := c.State(testContext(t), call); st != want || err != nil {
			t.Errorf("%s: %q %v", call, st, err)
		}
	}
}

func TestManyCallsShareAConnection(t *testing.T) {
	o := serveHost(t, newHost())
	c := o.dial(t)
	errs := make(chan error)
	for i := range 100 {
		go func() {
			id, err := c.Prompt(testContext(t), text(fmt.Sprint(i)))
			if err == nil && id != fmt.Sprint("m-", i) {
				err = fmt.Errorf("prompt %d is %s", i, id)
			}
			errs <- err
		}()
	}
	for range 100 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
