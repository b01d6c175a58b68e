// Package code holds the tool run_code: JavaScript that calls the other tools.
//
// Each call has an engine of its own, with nothing in it but the language,
// console and tools: no files, network, processes, modules or timers. The tools
// are called through the agent's dispatcher, so that checks, permissions and the
// log are those of the model's own calls. Nothing of a call outlives it, with
// one exception that runner.run describes.
package code
