package model

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing answers with the errors in order, then with success.
func failing(errs ...error) (func(context.Context) (Response, error), *int) {
	n := new(int)
	return func(context.Context) (Response, error) {
		*n++
		if *n <= len(errs) {
			return Response{Text: "thrown away"}, errs[*n-1]
		}
		return Response{Text: "ok", Finish: FinishStop}, nil
	}, n
}

func repeat(err error, n int) []error {
	out := make([]error, n)
	for i := range out {
		out[i] = err
	}
	return out
}

func TestRunRetriesFiveTimesWithDoublingWaits(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rand  float64
		waits []time.Duration
	}{
		{"no jitter", 0.5, []time.Duration{500, 1000, 2000, 4000, 8000}},
		{"least", 0, []time.Duration{450, 900, 1800, 3600, 7200}},
		{"most", 1, []time.Duration{550, 1100, 2200, 4400, 8800}},
	} {
		var slept, told []time.Duration
		var events []string
		r := Retry{
			Sleep: func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil },
			Rand:  func() float64 { return tt.rand },
			Wait: func(attempt int, d time.Duration, err *Error) error {
				told = append(told, d)
				events = append(events, "wait "+string(rune('0'+attempt))+" "+err.Code)
				return nil
			},
			Start: func(attempt int) error { events = append(events, "start "+string(rune('0'+attempt))); return nil },
		}
		attempt, n := failing(repeat(&Error{Code: CodeServer}, 5)...)
		res, err := Run(t.Context(), r, attempt)
		if err != nil || res.Text != "ok" || *n != 6 {
			t.Fatalf("%s: %+v, %v after %d attempts", tt.name, res, err, *n)
		}
		for i := range tt.waits {
			want := tt.waits[i] * time.Millisecond
			if d := slept[i] - want; d < -time.Microsecond || d > time.Microsecond {
				t.Errorf("%s: wait %d was %s, want %s", tt.name, i+1, slept[i], want)
			}
		}
		if !reflect.DeepEqual(slept, told) || strings.Join(events[:4], ",") != "wait 1 SERVER,start 2,wait 2 SERVER,start 3" || events[9] != "start 6" {
			t.Errorf("%s: told %v, slept %v, events %v", tt.name, told, slept, events)
		}
	}
}

func TestRunGivesUp(t *testing.T) {
	boom := errors.New("log is full")
	for _, tt := range []struct {
		name     string
		errs     []error
		retry    Retry
		attempts int
		want     error
	}{
		{"after five retries", repeat(&Error{Code: CodeTimeout}, 9), Retry{}, 6, &Error{Code: CodeTimeout}},
		{"at once where no retry helps", repeat(&Error{Code: CodeAuth}, 9), Retry{}, 1, &Error{Code: CodeAuth}},
		{"at a script's end", repeat(&Error{Code: CodeScriptExhausted}, 9), Retry{}, 1, &Error{Code: CodeScriptExhausted}},
		{"when the wait cannot be logged", repeat(&Error{Code: CodeServer}, 9), Retry{Wait: func(int, time.Duration, *Error) error { return boom }}, 1, boom},
		{"when the start cannot be logged", repeat(&Error{Code: CodeServer}, 9), Retry{Start: func(int) error { return boom }}, 1, boom},
	} {
		synctest.Test(t, func(t *testing.T) {
			attempt, n := failing(tt.errs...)
			res, err := Run(t.Context(), tt.retry, attempt)
			if *n != tt.attempts || !reflect.DeepEqual(err, tt.want) || !reflect.DeepEqual(res, Response{}) {
				t.Errorf("%s: %d attempts, %v, %v", tt.name, *n, res, err)
			}
		})
	}
}

func TestRunHonoursRetryAfterUpToAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		attempt, _ := failing(&Error{Code: CodeRateLimit, RetryAfter: 60 * time.Second})
		if _, err := Run(t.Context(), Retry{}, attempt); err != nil || time.Since(start) != 60*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		original := &Error{Code: CodeRateLimit, Message: "slow down", Status: 429, RetryAfter: 61 * time.Second}
		start = time.Now()
		attempt, n := failing(original)
		_, err := Run(t.Context(), Retry{}, attempt)
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeRateLimit || e.Status != 429 || !strings.Contains(e.Message, "61 seconds") || *n != 1 || time.Since(start) != 0 {
			t.Errorf("got %v after %d attempts", err, *n)
		}
		if original.Message != "slow down" {
			t.Error("the attempt's own error was changed")
		}
	})
}

func TestRunEndsItsWaitWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		attempt, n := failing(repeat(&Error{Code: CodeServer}, 9)...)
		start := time.Now()
		_, err := Run(ctx, Retry{}, attempt)
		if !errors.Is(err, context.DeadlineExceeded) || *n != 1 || time.Since(start) != 200*time.Millisecond {
			t.Errorf("%v after %d attempts and %s", err, *n, time.Since(start))
		}
	})
}

func TestRunReturnsWhatACancelledAttemptHad(t *testing.T) {
	res, err := Run(t.Context(), Retry{}, func(context.Context) (Response, error) {
		return Response{Text: "half"}, context.Canceled
	})
	if res.Text != "half" || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", res, err)
	}
}
