package deepseek

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"

	"deepseek/internal/session"
)

// TestIntervals folds the cases that the other packages fold too, and compares
// with the product's own fold.
func TestIntervals(t *testing.T) {
	data, err := os.ReadFile("testdata/intervals.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name      string
		Events    []Event
		Malformed bool
		Result    struct {
			RunResult
			First int64
		}
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := folded(t, c.Events)
			if c.Malformed {
				if !errors.Is(err, ErrMalformedEvent) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := c.Result.RunResult
			if got.Events[0].Seq != c.Result.First || got.FinalResponse != want.FinalResponse || !reflect.DeepEqual(got.FinishReason, want.FinishReason) ||
				!reflect.DeepEqual(got.Usage, want.Usage) || got.Steps != want.Steps || got.Denied != want.Denied || !reflect.DeepEqual(got.Error, want.Error) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			own := session.NewInterval(c.Result.First)
			for _, e := range c.Events {
				if err := own.Apply(session.Event{Seq: e.Seq, Type: e.Type, Time: e.Time, Data: e.Data}); err != nil {
					t.Fatal(err)
				}
			}
			r := own.Result()
			raw, err := json.Marshal(r.Usage)
			if err != nil {
				t.Fatal(err)
			}
			var usage Usage
			if err := json.Unmarshal(raw, &usage); err != nil {
				t.Fatal(err)
			}
			if r.FinalResponse != got.FinalResponse || !reflect.DeepEqual(r.FinishReason, got.FinishReason) || !reflect.DeepEqual(usage, got.Usage) || r.Steps != got.Steps || r.Denied != got.Denied {
				t.Errorf("the product says %+v, this package %+v", r, got)
			}
		})
	}
}

// folded is the result of an interval with the events; the prompt is answered in the middle.
func folded(t *testing.T, events []Event) (*RunResult, error) {
	t.Helper()
	in := interval{}
	for i := range events {
		if i == 1 {
			if _, err := in.receipt("s", "m1"); err != nil {
				return nil, err
			}
		}
		if _, err := in.feed(told{event: &events[i]}); err != nil {
			return nil, err
		}
	}
	if done, err := in.feed(told{status: "running"}); done || err != nil {
		t.Errorf("running: %v %v", done, err)
	}
	if done, err := in.feed(told{status: "idle"}); !done || err != nil {
		t.Errorf("idle: %v %v", done, err)
	}
	return in.result()
}
