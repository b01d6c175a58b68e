package model

import (
	"math"
	"testing"

	"deepseek/internal/session"
)

func TestContextWindow(t *testing.T) {
	for name, want := range map[string]int{Default: 1_000_000, Demo: DefaultContextWindow, "script:a/b.yaml": DefaultContextWindow} {
		if n, ok := ContextWindow(name); !ok || n != want {
			t.Errorf("%s: %d, %v", name, n, ok)
		}
	}
	if _, ok := ContextWindow("some-model"); ok {
		t.Error("an unknown model has a window")
	}
}

func TestCost(t *testing.T) {
	u := session.Usage{InputTokens: 1_000_000, CacheReadTokens: 2_000_000, OutputTokens: 3_000_000, ReasoningTokens: 1_000_000}
	own := map[string]Price{"some-model": {Input: 1, Cached: 0.1, Output: 2}, Default: {}}
	for _, tt := range []struct {
		name   string
		prices map[string]Price
		want   float64
		ok     bool
	}{
		{"some-model", own, 7.2, true},
		{"some-model", nil, 0, false},
		{Default, own, 0, true},
		{Default, nil, flashPrice.Input + 2*flashPrice.Cached + 3*flashPrice.Output, true},
		{Demo, nil, 0, false},
		{"script:x", nil, 0, false},
	} {
		if got, ok := Cost(tt.name, u, tt.prices); ok != tt.ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestKnownCannotBeChangedByACaller(t *testing.T) {
	Known()[0].Price.Input = 99
	if Known()[0].Price.Input == 99 {
		t.Error("a caller changed the table")
	}
}
