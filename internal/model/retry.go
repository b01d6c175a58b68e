package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// The retry policy.
const (
	MaxRetries    = 5 // attempts after the first
	MaxRetryAfter = 60 * time.Second
	firstDelay    = 500 * time.Millisecond
	maxDelay      = 10 * time.Second
	jitter        = 0.1 // of the delay, up or down
)

// Retry is the time and the chance that Run uses, and who is told. The zero
// value is real time and chance, and nobody.
type Retry struct {
	// Sleep returns nil after d, or ctx's error as soon as ctx ends.
	Sleep func(ctx context.Context, d time.Duration) error
	// Rand returns a number in [0, 1).
	Rand func() float64
	// Wait is told before a wait which attempt failed. Its error ends the run.
	Wait func(attempt int, delay time.Duration, err *Error) error
	// Start is told after a wait which attempt begins. Its error ends the run.
	Start func(attempt int) error
}

// Retryable tells whether another attempt may help.
func Retryable(err *Error) bool {
	switch err.Code {
	case CodeRateLimit, CodeServer, CodeTimeout, CodeTransport, CodeEmptyResponse, CodeStreamClosed, CodeMalformed:
		return true
	}
	return false
}

// Run makes attempts until one succeeds, one fails for good, or MaxRetries
// have followed the first. Attempts count from 1. A wait that the server asked
// for replaces the policy's own; one of more than MaxRetryAfter ends the run
// with an error that names the seconds. When ctx ends in an attempt, Run returns
// what the attempt returned; in a wait, ctx's error alone.
func Run(ctx context.Context, r Retry, attempt func(ctx context.Context) (Response, error)) (Response, error) {
	if r.Sleep == nil {
		r.Sleep = sleep
	}
	if r.Rand == nil {
		r.Rand = rand.Float64
	}
	// The jitter is added here, where the chance is a value handed in.
	delays := backoff.ExponentialBackOff{InitialInterval: firstDelay, Multiplier: 2, MaxInterval: maxDelay}
	for n := 1; ; n++ {
		res, err := attempt(ctx)
		if err == nil {
			return res, nil
		}
		var failed *Error
		if !errors.As(err, &failed) {
			return res, err
		}
		if !Retryable(failed) || n > MaxRetries {
			return Response{}, err
		}
		if failed.RetryAfter > MaxRetryAfter {
			return Response{}, tooLong(failed)
		}
		delay := failed.RetryAfter
		if planned := delays.NextBackOff(); delay <= 0 {
			delay = time.Duration(float64(planned) * (1 - jitter + 2*jitter*r.Rand()))
		}
		if r.Wait != nil {
			if err := r.Wait(n, delay, failed); err != nil {
				return Response{}, err
			}
		}
		if err := r.Sleep(ctx, delay); err != nil {
			return Response{}, err
		}
		if r.Start != nil {
			if err := r.Start(n + 1); err != nil {
				return Response{}, err
			}
		}
	}
}

func tooLong(err *Error) *Error {
	out := *err
	out.Message = fmt.Sprintf("%s (the server asks to wait %.0f seconds, more than the %.0f that are waited here; try again then)",
		err.Message, math.Ceil(err.RetryAfter.Seconds()), MaxRetryAfter.Seconds())
	return &out
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
