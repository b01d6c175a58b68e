// Package engine is the agent: it takes messages from an inbox, runs turns of
// steps until nothing is owed, and is then idle. Only Run, which owns one
// idle-to-idle interval, speaks of a result; an enqueue answers with a receipt,
// and a receipt proves that a message was accepted, never what came of it.
package engine
