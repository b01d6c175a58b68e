package deepseek

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"deepseek/internal/model"
)

// What a server can be found to need; kept with the session's settings.
const (
	// NoReasoning leaves reasoning_content out: the server refuses the field.
	NoReasoning = "no-reasoning"
	// ReasoningRequired sends reasoning_content with every assistant message,
	// empty where the model gave none: the server refuses its absence.
	ReasoningRequired = "reasoning-required"
)

var (
	requiredWords = []string{"must be passed", "must be provided", "must be set", "must include", "must contain", "must have", "must be present", "is required", "required field", "field required", "missing", "pass back", "be passed back"}
	refusedWords  = []string{"unsupported", "not supported", "not support", "not allowed", "not permitted", "not be included", "unrecognized", "unrecognised", "unknown", "unexpected", "extra", "additional propert", "should not", "must not", "please remove", "invalid", "forbidden", "no such field"}
)

// Adapt looks at a refusal and says which adaptation would answer it. It
// reports false if the refusal is about something else, or if the session has
// the adaptation already. The caller appends it to the session's adaptations
// and tries once more.
func Adapt(err error, have []string) (adaptation string, ok bool) {
	var e *model.Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return "", false
	}
	text := strings.ToLower(e.Message)
	if !strings.Contains(text, "reasoning_content") && !strings.Contains(text, "reasoning content") {
		return "", false
	}
	in := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case in([]string{"must not", "should not"}):
		adaptation = NoReasoning
	case in(requiredWords):
		adaptation = ReasoningRequired
	case in(refusedWords):
		adaptation = NoReasoning
	default:
		return "", false
	}
	return adaptation, !slices.Contains(have, adaptation)
}
