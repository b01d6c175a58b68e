package cli

import (
	"reflect"
	"testing"

	"deepseek/internal/session"
)

func TestNothingIsTakenForASkipThatDoesNotSaySo(t *testing.T) {
	for text, want := range map[string][]session.Answer{
		`{"answers":[{"id":"a","selected":["x"]}]}`:             {{ID: "a", Selected: []string{"x"}}},
		`{"answers":[{"id":"a","selected":[]}]}`:                {{ID: "a", Selected: []string{}}},
		`{"answers":[{"id":"a","custom":"words"}]}`:             {{ID: "a", Selected: []string{}, Custom: "words"}},
		`{"answers":[{"id":"a"}]}`:                              nil,
		`{"answers":[{"id":"a","selected":null}]}`:              nil,
		`{"answers":[{"id":"a","selected":null,"custom":"w"}]}`: nil,
		`{"answers":[{"id":"a","selected":[],"custom":""}]}`:    nil,
		`{"answers":[{"id":"a","selected":[],"custom":null}]}`:  nil,
		`{"answers":[{"ID":"a","Selected":[]}]}`:                nil,
		`{"answers":[{"selected":[]}]}`:                         nil,
		`{"answers":[]}`:                                        nil,
		`{"answers":[{"id":"a","selected":[]}],"more":1}`:       nil,
		`{"answers":[{"id":"a","selected":[]}]} {}`:             nil,
		`[]`: nil,
		"{\"answers\":[{\"id\":\"a\",\"custom\":\"\xff\"}]}": nil,
	} {
		got, err := parseBatch(text)
		if (err != nil) != (want == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestACallIDThatLooksLikeAFlagIsNotReadAsOne(t *testing.T) {
	a := &App{Env: []string{"HOME=/h"}}
	for id, want := range map[string]string{
		"call_1":     "deepseek answer s call_1",
		"--withdraw": "deepseek answer s -- --withdraw",
	} {
		if got := a.answerCommand("/h/.deepseek", "s", id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
	if got, want := a.answerCommand("/other home", "s", "-x"), "deepseek answer s --home '/other home' -- -x"; got != want {
		t.Errorf("%s", got)
	}
}
