package remote

import (
	"path/filepath"
	"testing"
)

func TestASocketShowsHowItsOwnerIs(t *testing.T) {
	o := serveHost(t, newHost())
	look := func(want Life) {
		t.Helper()
		if got := LifeAt(t.Context(), o.l.Path()); got != want || Probe(t.Context(), o.l.Path()) != (want != Dead) {
			t.Errorf("life %d, want %d", got, want)
		}
	}
	look(Live)
	o.l.Leave()
	look(Leaving)
	if err := o.l.Close(); err != nil {
		t.Fatal(err)
	}
	look(Dead)
	if LifeAt(t.Context(), filepath.Join(t.TempDir(), "none")) != Dead {
		t.Error("there is life without a socket")
	}
}
