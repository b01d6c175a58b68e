package tool

import "context"

type restKey struct{}

// WithRest makes rest known to whoever works under the context: a clock that is
// not to run while a person is waited for. rest stops the clock and returns what
// lets it go on. It is safe for concurrent use, and rests may overlap.
func WithRest(ctx context.Context, rest func() (resume func())) context.Context {
	return context.WithValue(ctx, restKey{}, rest)
}

// Rest is called by what waits for a person, a question or an approval, before
// it does, and what it returns once the wait is over:
//
//	defer tool.Rest(ctx)()
//
// It does nothing where no clock runs.
func Rest(ctx context.Context) (resume func()) {
	if rest, ok := ctx.Value(restKey{}).(func() func()); ok {
		return rest()
	}
	return func() {}
}
