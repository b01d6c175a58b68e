package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func (s *story) subStarts(id, name, args string) *story {
	return s.add(TypePTCDispatchStart, PTCStart{RootCallID: "c1", ParentCallID: "c1", SubCallID: id, Name: name, Arguments: args})
}

func (s *story) subEnds(id, name, content, code string) *story {
	v := PTC{PTCStart: PTCStart{RootCallID: "c1", ParentCallID: "c1", SubCallID: id, Name: name}, Content: content}
	if code != "" {
		v.IsError, v.Error = true, &ToolError{name, code}
	}
	return s.add(TypePTCDispatch, v)
}

func repairText(t *testing.T, s *story) string {
	t.Helper()
	st := s.state()
	closers, err := st.Turns.Closers("s1", &st.Questions)
	if err != nil {
		t.Fatal(err)
	}
	var r ToolResult
	if err := json.Unmarshal(closers[0].Data, &r); err != nil {
		t.Fatal(err)
	}
	return r.Message.Content
}

func TestRepairOfCodeTellsWhatItHadDoneAndBeenTold(t *testing.T) {
	code := func() *story { return tell(t).turn(1).step(1, 1).says(callOf("c1"), callOf("c2")).starts("c1") }
	if got := repairText(t, code()); got != outcomeUnknown {
		t.Errorf("without sub-calls: %s", got)
	}
	answer := `{"answers":[{"id":"q","selected":[],"custom":"` + strings.Repeat("long ", 100) + `"}]}`
	got := repairText(t, code().
		subStarts("s1", "bash", `{"command":"make"}`).subEnds("s1", "bash", "ok", "").
		subStarts("s2", "read", `{"file_path":"`+strings.Repeat("é", 100)+`"}`).subEnds("s2", "read", "FS_NOT_FOUND: no", "FS_NOT_FOUND").
		subStarts("s3", AskTool, `{"questions":1}`).subEnds("s3", AskTool, answer, "").
		subStarts("s4", AskTool, `{"questions":2}`).subEnds("s4", AskTool, "NO_PROVIDER: no", "NO_PROVIDER").
		subStarts("s5", AskTool, `{"questions":3}`).
		subStarts("s6", "write", `{"file_path":"a"}`))
	want := outcomeUnknown + `
Calls that the code made and that had ended:
- s1: bash {"command":"make"}
- s2: read {"file_path":"` + strings.Repeat("é", 33) + `… failed: FS_NOT_FOUND
Calls that were running, and of which it is not known what they did:
- s6: write {"file_path":"a"}
Questions that the code asked, with their results:
- s3, asked with {"questions":1}: ` + answer + `
- s4, asked with {"questions":2}: not answered (NO_PROVIDER)
- s5, asked with {"questions":3}: no answer. ` + goneWithCall
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRepairOfMuchCodeIsBoundedButForQuestions(t *testing.T) {
	s := tell(t).turn(1).step(1, 1).says(callOf("c1")).starts("c1")
	for i := range 3 * keptSubCalls {
		id := fmt.Sprint("s", i)
		s.subStarts(id, "read", strings.Repeat("x", 1000)).subEnds(id, "read", "text", "")
	}
	s.subStarts("q", AskTool, "{}").subEnds("q", AskTool, "the answer", "")
	got := repairText(t, s)
	if len(got) > 20_000 || !strings.Contains(got, fmt.Sprintf("- and %d more", 2*keptSubCalls)) || !strings.HasSuffix(got, "- q, asked with {}: the answer") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if st := s.state(); len(st.Turns.calls[0].subs.kept) > keptSubCalls+1 {
		t.Errorf("%d are kept", len(st.Turns.calls[0].subs.kept))
	}
}
