package session

import "testing"

// TestTheHeaderKeepsItsSeedLength: it names how much of a session was taken over
// from another, and is passed on by whoever writes the header anew.
func TestTheHeaderKeepsItsSeedLength(t *testing.T) {
	const line = `{"type":"session","version":1,"id":"a","createdAt":1,"cwd":"/w","delegationDepth":0,"parentSession":"p","seedLength":0}`
	h, err := ParseHeader([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := Marshal(h)
	if err != nil || string(raw) != line {
		t.Errorf("%s, %v\nwant\n%s", raw, err, line)
	}
}
