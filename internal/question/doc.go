// Package question asks people. It owns the foreground wait of a call that
// asks, the claims that answer UIs hold on it, and the rules of late answers.
//
// A question to a person has two lifetimes. The foreground wait belongs to the
// call and may end without an answer: the call then returns pending, which is
// neither a skip nor permission. The question belongs to the session and stays
// answerable; its state is a fold of the log (session.Questions), never a
// variable of this package. So the two ways to answer cannot contradict each
// other: a wait that ends writes the call's result before it tells anybody, and
// a late answer is decided under the inbox lock on what the log says.
//
// Who draws a card is not known here. Clients watch for waits, attach, and
// answer through their claim; approvals and plan reviews use the same waits.
package question
