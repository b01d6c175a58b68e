// Package deepseek speaks the chat completions wire of DeepSeek and of servers
// compatible with it: one streamed POST per attempt.
//
// A request is encoded with a fixed order of keys, the messages in front of the
// tools, so that the messages of request N+1 begin byte for byte with those of
// request N and the server's prefix cache holds.
//
// The stream is read by the goroutine that called Generate. An attempt is
// bounded by clocks, not by a total: one for the headers, one for bytes, which
// any keep-alive re-arms, and one for content, which only text, reasoning and
// fragments of calls re-arm.
package deepseek
