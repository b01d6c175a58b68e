package remote

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// linePipes are a stream's two files and their far ends.
func linePipes(t *testing.T) (in, out, farIn, farOut *os.File) {
	t.Helper()
	in, farIn, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	farOut, out, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{in, out, farIn, farOut} {
			_ = f.Close() // some are closed already
		}
	})
	return in, out, farIn, farOut
}

func TestLineStreamHandsLinesOverBothWays(t *testing.T) {
	in, out, farIn, farOut := linePipes(t)
	s, err := NewLineStream(in, out, 8)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := farIn.WriteString("one\n\n123456789\nlast"); err != nil {
		t.Fatal(err)
	}
	if err := farIn.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		line, tooLong, err := s.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		if tooLong {
			line = []byte("(too long)")
		}
		got = append(got, string(line))
	}
	if want := "one||(too long)|last"; strings.Join(got, "|") != want {
		t.Errorf("lines %q, want %q", got, want)
	}
	for _, line := range []string{"a", "b\n"} {
		if n, err := s.Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("write %q: %d %v", line, n, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(farOut); string(all) != "a\nb\n" || err != nil {
		t.Errorf("written: %q %v", all, err)
	}
	if _, err := s.Write([]byte("late")); err == nil {
		t.Error("a line was taken after Close")
	}
}

func TestLineStreamStopEndsTheInput(t *testing.T) {
	in, out, _, _ := linePipes(t)
	s, err := NewLineStream(in, out, 8)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if _, _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("next: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestLineStreamGivesUpAClientThatDoesNotRead(t *testing.T) {
	in, out, _, farOut := linePipes(t)
	lim := stdioLimits
	lim.queue, lim.stall, lim.flush = 1<<10, 50*time.Millisecond, 50*time.Millisecond
	s, err := newLineStream(in, out, lim)
	if err != nil {
		t.Fatal(err)
	}
	for first := true; ; first = false {
		if _, err = s.Write([]byte(strings.Repeat("x", 4<<10))); err != nil {
			break
		}
		if first { // it is written, however slow that is
			if line, err := bufio.NewReader(farOut).ReadString('\n'); len(line) != 4<<10+1 || err != nil {
				t.Fatalf("the first line has %d bytes: %v", len(line), err)
			}
		}
	}
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeClientTooSlow {
		t.Errorf("write: %v", err)
	}
	if _, _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("next: %v", err)
	}
	if err := s.Close(); !errors.As(err, &refused) {
		t.Errorf("close: %v", err)
	}
}

// It is told as a client that does not read, and not by the words of the deadline.
func TestLineStreamSaysThatTheLastLinesWereNotRead(t *testing.T) {
	in, out, farIn, _ := linePipes(t)
	lim := stdioLimits
	lim.flush = 50 * time.Millisecond
	s, err := newLineStream(in, out, lim)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte(strings.Repeat("x", 1<<20))); err != nil { // more than a pipe holds
		t.Fatal(err)
	}
	if err := farIn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("next: %v", err)
	}
	var refused *Error
	if err := s.Close(); !errors.As(err, &refused) || refused.Code != CodeClientTooSlow || !strings.Contains(refused.Message, "did not read the rest") {
		t.Errorf("close: %v", err)
	}
}
