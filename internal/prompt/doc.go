// Package prompt asks a person at the terminal. It draws one card for each
// question, approval or plan review, counts down while the person reads, and
// delivers what came of it to the card's Desk.
//
// The package is a client of a wait and nothing more: it holds no deadline of
// the host's, only the remainder that attaching yielded, which it counts down on
// its own monotonic clock. It never decides that a question is answered; it says
// so when the desk has accepted.
//
// From the outside in:
//
//   - Prompter runs cards, one after the other on one terminal.
//   - runner is one card being run: its select loop owns all of the card's state.
//   - cardState is that state, changed only by its methods, with the time handed
//     in; it reads no clock and writes no terminal.
//   - view turns a cardState into lines that fit the terminal; painter brings a
//     frame of lines onto the screen in place; plainFace does the same for a
//     terminal without cursor control.
//   - decoder turns bytes into keys.
//   - TTY owns the terminal itself.
//
// From survey come the frame of a prompt (Ask with its validation loop, of which
// delivering the answer is the last validator) and the colour functions of its
// templates. Its reader, its renderer and its standard streams are not used: an
// abandoned survey prompt keeps a goroutine reading and the terminal raw, and its
// renderer cannot redraw in place after a resize.
package prompt
