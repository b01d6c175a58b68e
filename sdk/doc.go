// Package deepseek runs the deepseek coding agent from a program. It starts the
// server `deepseek rpc` and speaks to it over its standard streams.
//
// Client.Run owns one interval of a session, from the receipt of a task to the
// moment when the agent is idle again, and returns what came of it. The interval
// is wider than the task: whatever joins before that moment belongs to it.
package deepseek
