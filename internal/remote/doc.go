// Package remote speaks JSON-RPC about a session that lives in another process:
// one object a line, over a control socket or standard streams.
//
// From the bottom up:
//
//   - lineReader cuts a stream into bounded lines; outbox is the bounded queue of
//     what goes out; channel joins them for a jrpc2 server so that requests take
//     effect one at a time, in the order of their arrival.
//   - methods.go holds the vocabulary, decode.go checks parameters against it,
//     errors.go says what refusals look like on the wire.
//   - Host is what a session offers to those who may reach it. seat is one
//     connection's place at one session: its claims and its subscription. Both
//     hold no deadline and no settlement rule of questions; those are the host's.
//   - Listener is the control socket of an owner. It admits processes of the same
//     user that do not descend from the owner.
//   - Client is the other end, for the commands that reach a live session.
package remote
