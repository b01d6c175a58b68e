package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestErrorsOfJSONNameNoTypesOfTheProgram(t *testing.T) {
	type Inner struct {
		Turn  int      `json:"turn"`
		Words []string `json:"words"`
		On    *bool    `json:"on"`
	}
	type outer struct {
		Inner
		Deep Inner   `json:"deep"`
		Many []Inner `json:"many"`
	}
	for in, want := range map[string]string{
		`[]`:                       "it is an array, not an object",
		`{"turn":"x"}`:             "turn is a string, not a whole number in range",
		`{"turn":1.5}`:             "turn is the number 1.5, which is not a whole number in range",
		`{"deep":{"words":{}}}`:    "deep.words is an object, not an array",
		`{"deep":{"on":3}}`:        "deep.on is a number, not true or false",
		`{"many":[{"words":[1]}]}`: "many.words is a number, not a string",
		`{`:                        "unexpected end of JSON input",
	} {
		err := json.Unmarshal([]byte(in), new(outer))
		got := PlainJSON(fmt.Errorf("%w: event 7: %w", ErrDamaged, err))
		if got.Error() != "damaged session file: event 7: "+want || !errors.Is(got, ErrDamaged) {
			t.Errorf("%s: %v, want %s", in, got, want)
		}
	}
	if PlainJSON(nil) != nil {
		t.Error("nil")
	}
	for _, err := range []error{second(ParseHeader([]byte(`{"type":"session","version":1,"id":7}`))), second(ParseEvent([]byte(`{"seq":0,"type":7}`)))} {
		if err == nil || PlainJSON(err).Error() != err.Error() {
			t.Errorf("not in plain words: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
