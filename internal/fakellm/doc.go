// Package fakellm is a chat completions server for tests. It plays a script on
// 127.0.0.1, keeps every request, and is as strict as the strictest server: a
// request that breaks a rule gets a 400 that says which, and is listed by
// Violations.
//
// In Go, Start(t, Script{Steps: …}) starts a server that ends with the test and
// fails it where a rule was broken. In a script of testscript, Commands gives
//
//	fakellm FILE               start; sets DEEPSEEK_BASE_URL, and DEEPSEEK_API_KEY if it is empty
//	fakellm-requests FILE      write the bodies of all requests so far, one a line
//	fakellm-wait N             wait until N requests have arrived
//	fakellm-release            let go what holds
//
// FILE is YAML or JSON with the fields of Script and Step in small letters:
//
//	steps:
//	  - reasoning: Let me look.
//	    calls: [{id: c1, name: read, arguments: {file_path: a.txt}}]
//	  - status: 429
//	    headers: {Retry-After: "1"}
//	    body: '{"error":{"message":"slow down"}}'
//	  - text: done
//	    chunk: 5            # bytes of a piece, 12 if not given
//	    delay: 10ms         # between pieces; first_delay: before the headers
//	    cut: reset          # or end, close; cut_at: after how many bytes of the body
//	    hold: true          # until released; hold_at: after how many bytes of the body
//	    usage: {prompt: 100, cached: 64, completion: 20, reasoning: 5}
//	lenient: true           # break any rule
//	rewrites: true          # messages may change between requests
//	repeat_last: true       # instead of a 400 past the end
package fakellm
