package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepseek/internal/model"
)

// MaxWait is the longest wait in seconds: what still fits 32 bits as milliseconds.
const MaxWait = 2147483

// parse reads the text of a flag, a variable or a scalar of the file as the
// setting's kind and checks its range.
func (s Setting) parse(text string) (any, error) {
	v, err := s.convert(text)
	if err != nil {
		return nil, err
	}
	if s.check != nil {
		if err := s.check(v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// wholes says which whole numbers a setting takes: what its check lets pass of
// those that any may have.
func (s Setting) wholes() string {
	low, high, also := math.MinInt32, math.MaxInt32, ""
	takes := func(n int) bool { return s.check == nil || s.check(n) == nil }
	if !takes(low) && takes(-1) && !takes(0) {
		also = ", or -1"
	}
	switch {
	case takes(low):
	case takes(0):
		low = 0
	default:
		low = 1
	}
	for _, n := range []int{256, MaxWait} { // the only bounds from above
		if takes(n) && !takes(n+1) {
			high = n
		}
	}
	return fmt.Sprintf("from %d to %d%s", low, high, also)
}

func (s Setting) convert(text string) (any, error) {
	switch s.Kind {
	case Text:
		return text, nil
	case Choice:
		if slices.Contains(s.Choices, text) {
			return text, nil
		}
		hint := ""
		if near := Nearest(text, s.Choices); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return nil, fmt.Errorf("%q is none of %s%s", text, strings.Join(s.Choices, ", "), hint)
	case Whole:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number %s", text, s.wholes())
		}
		return int(n), nil
	case Number:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", text)
		}
		return f, nil
	case Switch:
		switch text {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", text)
	case Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is no duration such as 90s or 2h", text)
		}
		return d, nil
	}
	return nil, fmt.Errorf("cannot be given as text")
}

func notBlank(v any) error {
	s := v.(string)
	if strings.TrimSpace(s) == "" {
		return fmt.Errorf("is empty")
	}
	if strings.ContainsAny(s, "\x00\n\r") {
		return fmt.Errorf("holds a line break or a null byte")
	}
	return nil
}

// baseAddress never quotes the address: it may hold a password.
func baseAddress(v any) error {
	_, err := model.ParseBase(v.(string))
	return err
}

func atLeast(low int) func(any) error {
	return func(v any) error {
		if v.(int) < low {
			return fmt.Errorf("%d is below %d", v, low)
		}
		return nil
	}
}

func between(low, high float64) func(any) error {
	return func(v any) error {
		f, ok := v.(float64)
		if !ok {
			f = float64(v.(int))
		}
		if !(f >= low && f <= high) { // so that NaN fails
			return fmt.Errorf("%v is not from %v to %v", v, low, high)
		}
		return nil
	}
}

func waitSeconds(v any) error {
	if n := v.(int); n != -1 && (n < 1 || n > MaxWait) {
		return fmt.Errorf("%d is neither -1 nor from 1 to %d seconds", n, MaxWait)
	}
	return nil
}

func positive(v any) error {
	if d := v.(time.Duration); d <= 0 {
		return fmt.Errorf("%v is not above zero", d)
	}
	return nil
}

// shellText is the check of a command: it may have several lines.
func shellText(v any) error {
	s := v.(string)
	if strings.TrimSpace(s) == "" {
		return fmt.Errorf("is empty")
	}
	if strings.Contains(s, "\x00") {
		return fmt.Errorf("holds a null byte")
	}
	return nil
}

// projectModel is the rule for a model that a repository may choose: a name,
// never something that makes the program read a file.
func projectModel(name string) error {
	n := strings.ToLower(strings.TrimSpace(name))
	if strings.HasPrefix(n, "script:") || strings.Contains(n, `\`) || strings.ContainsAny(n[:1], "/.~") {
		return fmt.Errorf("only the name of a model may stand here")
	}
	return nil
}
