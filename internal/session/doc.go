// Package session is the vocabulary of a session and the pure functions that
// give it meaning: the events of the log, the messages in them, and the folds
// that rebuild from events what the program knows (the model's history, the
// inbox, open turns, the result of an owned interval).
//
// Nothing here opens a file, reads a clock or starts a goroutine. A fold is a
// value with an Apply method that consumes events in log order; it is not safe
// for concurrent use, its owner serialises access.
package session
