package cli

import (
	"regexp"
	"strings"
	"testing"
)

func TestNoTextBecomesAWorkflowCommand(t *testing.T) {
	for text, want := range map[string]string{
		"::error::boom\n":             ":\\:error::boom\n",
		"  \t::error::boom":           "  \t:\\:error::boom",
		"a\r::error::boom\r\n::x::":   "a\r:\\:error::boom\r\n:\\:x::",
		"a ::error::b std::vector":    "a ::error::b std::vector",
		": :x":                        ": :x",
		"\u00a0\u200b::error::":       "\u00a0\u200b:\\:error::",
		":\u200b:error::":             ":\u200b\\:error::",
		":\x00:error::":               ":\x00\\:error::",
		"a ##[error]b\n###[c] # #[d]": "a ##\\[error]b\n###\\[c] # #[d]",
		"#\u00ad#[error]":             "#\u00ad#\\[error]",
		"::notice title=deepseek::ours\n::notice title=deepseek::ours\n": "::notice title=deepseek::ours\n:\\:notice title=deepseek::ours\n",
		"x ::notice title=deepseek::ours\n":                              "x ::notice title=deepseek::ours\n",
		":::\n":                                                          ":\\::\n",
		"# a heading\n[x](y) [[z]]\n":                                    "# a heading\n[x](y) [[z]]\n",
	} {
		for _, size := range []int{len(text), 1, 2, 3} {
			g := newWorkflowGuard()
			if strings.Contains(text, "ours") {
				if size < len(text) {
					continue // ours comes in one piece
				}
				g.ours["::notice title=deepseek::ours"] = 1
			}
			if got := inPieces(g, text, size); got != want {
				t.Errorf("%q in pieces of %d: %q, want %q", text, size, got, want)
			}
		}
	}
}

func inPieces(g *workflowGuard, text string, size int) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(size, len(text))
		b.Write(g.disarm([]byte(text[:n])))
		text = text[n:]
	}
	return b.String()
}

// armed is what a runner takes for a command, whatever it skips.
var armed = regexp.MustCompile("(?m)(?:^|[\r\n])[\\x00-\\x20\\x7f-\\x{10ffff}]*:[^\\x20-\\x7e\\r\\n]*:|#[^\\x20-\\x7e\\r\\n]*#[^\\x20-\\x7e\\r\\n]*\\[")

func FuzzNoTextBecomesAWorkflowCommand(f *testing.F) {
	f.Add("::error::boom\r\n ##[x]", 2)
	f.Fuzz(func(t *testing.T, text string, size int) {
		got := inPieces(newWorkflowGuard(), text, max(1, size%7))
		if m := armed.FindString(strings.ToValidUTF8(got, "\ufffd")); m != "" {
			t.Errorf("%q of %q", m, got)
		}
		if strings.ReplaceAll(got, "\\", "") != strings.ReplaceAll(text, "\\", "") {
			t.Errorf("%q became %q", text, got)
		}
	})
}
