// Package script holds the models that need no server: a script of answers
// read from a file, for tests and CI, and a small demo that drives the real
// loop, tools, log and questions.
//
// A script is YAML or JSON:
//
//	responses:
//	  - reasoning: I should look first.
//	    tool_calls:
//	      - {name: read, arguments: {file_path: a.txt}}   # or a string, sent as it is
//	  - text: All done.
//	    delay_ms: 200                                     # before the answer begins
//	    usage: {input: 100, cached: 64, output: 20}       # input does not include cached
//	  - error: {code: RATE_LIMIT, message: slow down}
//	  - text: cut
//	    finish: length
//
// Entry k answers the k-th request of the session that commits, so a session
// that is resumed goes on where it stood, and a retry gets the same entry again.
package script
