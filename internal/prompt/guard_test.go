package prompt

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAGuardActsOnTheLastWholeOrder(t *testing.T) {
	hold := order{Held: true, Card: true, Sane: unix.Termios{Lflag: 1}, Ours: unix.Termios{Lflag: 2}}
	for name, c := range map[string]struct {
		in   []byte
		want order
		ok   bool
	}{
		"nothing":    {nil, order{}, true},
		"held":       {hold.bytes(), hold, true},
		"held again": {append(order{}.bytes(), hold.bytes()...), hold, true},
		"released":   {append(hold.bytes(), order{}.bytes()...), order{}, true},
		"cut off":    {append(hold.bytes(), hold.bytes()[:10]...), order{}, false},
	} {
		if got, ok := lastOrder(bytes.NewReader(c.in)); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if _, ok := lastOrder(io.MultiReader(bytes.NewReader(hold.bytes()), failing{})); ok {
		t.Error("acted on a pipe that failed")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no") }

// TestChangesWithinChanges: the modes before the first change are what is restored, those of the
// last are what the terminal has to have for it.
func TestChangesWithinChanges(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	modes := func(n int) (m unix.Termios) { m.Cc[0] = uint8(n); return m }
	told := make(chan struct{})
	close(told)
	g := &Guard{orders: out, launched: told}
	want := func(what string, held bool, sane, ours int, card bool) {
		t.Helper()
		buf := make([]byte, len(order{}.bytes()))
		if _, err := io.ReadFull(in, buf); err != nil {
			t.Fatal(err)
		}
		got, _ := lastOrder(bytes.NewReader(buf))
		if expected := (order{Held: held, Card: card, Sane: modes(sane), Ours: modes(ours)}); got != expected {
			t.Errorf("%s: %+v, want %+v", what, got, expected)
		}
	}
	echo, card := new(int), new(int)
	g.hold(held{who: echo, sane: modes(1), ours: modes(2)})
	want("echo", true, 1, 2, false)
	g.hold(held{who: card, sane: modes(2), ours: modes(3), card: true})
	want("a card over it", true, 1, 3, true)
	g.release(card)
	want("the card is gone", true, 1, 2, false)
	g.release(echo)
	want("all is back", false, 0, 0, false)
	g.release(echo) // says nothing again
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(in); len(rest) > 0 {
		t.Errorf("said more: %d bytes", len(rest))
	}
}

// TestWithoutAGuardAllGoesOn: one that cannot be started, or does not listen any more, is none.
func TestWithoutAGuardAllGoesOn(t *testing.T) {
	var none *Guard
	none.hold(held{who: t})
	none.release(t)
	none.Close()
	NewGuard(nil).Close()
	g := NewGuard(func(_, _ *os.File) *exec.Cmd { return &exec.Cmd{Path: "/no/such/program"} })
	g.hold(held{who: t})
	g.hold(held{who: t})
	g.release(t)
	g.Close()
}

// TestNoGuardByHand: the word alone makes no process a guard, which would listen to no signal.
func TestNoGuardByHand(t *testing.T) {
	if StandGuard() {
		t.Error("this process stood guard")
	}
}
