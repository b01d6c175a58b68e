package prompt

import (
	"context"
	"errors"
	"strings"

	"deepseek/internal/session"
)

// ErrTerminal marks errors of the terminal: it could not be taken, or it failed under the card.
// The claim has been let go then; the question is none the worse for it.
var ErrTerminal = errors.New("the terminal cannot be used")

var errBackground = errors.New("the program runs in the background")

// Screen is whoever else writes to the terminal.
type Screen interface {
	// Pause returns when nothing is written any more and the cursor is at the start of a line.
	Pause()
	Resume()
}

// Prompter runs cards on one terminal. Run may be called from several goroutines: cards take
// turns, in the order in which they came (see Join), and one that waits its turn has no claim. A card
// that its person hid lets a waiting one have the terminal, and keeps its claim and countdown.
// While the process is in the background a card waits, without a claim, and comes, or comes
// back with all that was typed, when it is in the foreground again.
// The fields are set before the first Run and not changed after.
type Prompter struct {
	Terminal Terminal
	Drafts   Drafts // nil keeps none
	Screen   Screen // nil: nobody else writes
	// Redact takes out what is not to be shown or kept, such as a key, of an answer that is told, and
	// of a draft. Typing it shows it, and it is sent as typed. nil: nothing is.
	Redact func(string) string
	Colour bool
	Plain  bool // no cursor control (TERM=dumb): numbered lines
	Reflow bool // the terminal breaks long lines anew on a resize; see Reflows

	away  turns // to wait for the foreground
	turns turns
}

// minColumns is what a card with cursor control needs.
const minColumns = 16

// Reflows guesses from the environment whether the terminal breaks long lines anew when it
// gets narrower. Nothing can be asked, and the two kinds need different erasing.
func Reflows(getenv func(string) string) bool {
	for _, name := range []string{"VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "TMUX", "ALACRITTY_WINDOW_ID", "KONSOLE_VERSION", "WEZTERM_PANE"} {
		if getenv(name) != "" {
			return true
		}
	}
	switch getenv("TERM_PROGRAM") {
	case "iTerm.app", "vscode", "ghostty", "Apple_Terminal", "WezTerm":
		return true
	}
	for _, prefix := range []string{"foot", "tmux", "alacritty", "xterm-kitty", "xterm-ghostty"} {
		if strings.HasPrefix(getenv("TERM"), prefix) {
			return true
		}
	}
	return false
}

// Run asks one card and returns what became of it. The terminal is as it was before when Run
// returns, nothing that Run started goes on, and the claim is let go.
//
// The error is the context's when that ended, Attach's, or wraps ErrTerminal; of the Result, all
// but the State counts only without an error.
func (p *Prompter) Run(ctx context.Context, card Card, desk Desk) (Result, error) {
	return p.Join(card, desk)(ctx)
}

// Join takes the card's place among those that wait for the terminal, for who asks several at
// once, each in a goroutine of its own: these would come in any order. What it returns is Run,
// and is to be called, once.
func (p *Prompter) Join(card Card, desk Desk) (run func(context.Context) (Result, error)) {
	if len(card.Questions) == 0 {
		return func(context.Context) (Result, error) { return Result{}, errors.New("a card without questions") }
	}
	return newRunner(p, card, desk).run
}

// ending is the error by which a card ends otherwise than by an accepted answer.
type ending struct{ Result }

func (e *ending) Error() string { return "the card ended: " + e.Outcome.String() }

// Tell has the card that is on the terminal show lines above itself, at once.
// False says that no card has the terminal: the caller may write. It does not block.
func (p *Prompter) Tell(lines []string) bool {
	return p.turns.tell(strings.Join(lines, "\r\n") + "\r\n")
}

// answerBox takes the answers from survey.
type answerBox struct{ answers []session.Answer }

// WriteAnswer implements survey's Settable.
func (b *answerBox) WriteAnswer(_ string, v any) error {
	b.answers, _ = v.([]session.Answer)
	return nil
}
