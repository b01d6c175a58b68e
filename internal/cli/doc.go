// Package cli is the command line: a file for each command, and the frame they
// share. It wires the parts together and holds no rule of their domains.
//
// A command is three things: a struct of options, a constructor that reads the
// flags into it, and a function that runs. The constructor is handed the
// function, so that a test can look at the options without running anything:
//
//	func newShow(a *App, run func(context.Context, *App, showOptions) error) *cobra.Command
//
// and the command is registered by one line in commands.go:
//
//	register(newShow, runShow),
//
// A command prints its result with the App's Out and talks to the person with
// Err. It says how it failed by returning an error; Main alone turns that into
// words and an exit code.
package cli
