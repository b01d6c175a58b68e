package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// commands are the commands in the order in which help lists them. Adding one is
// a file and a line here.
func commands() []registration {
	return []registration{
		{"run", register(newRun, runRun)},
		{"answer", register(newAnswer, runAnswer)},
		{"questions", register(newQuestions, runQuestions)},
		{"attach", register(newAttach, runAttach)},
		{"send", register(newSend, runSend)},
		{"sessions", newSessions},
		{"goal", register(newGoal, runGoal)},
		{"show", register(newShowCommand, runShow)},
		{"rpc", register(newRPC, runRPC)},
		{"acp", register(newACP, runACP)},
		{"models", register(newModels, runModels)},
		{"config", newConfig},
		{"doctor", register(newDoctor, runDoctor)},
		{"completion", register(newCompletion, runCompletion)},
		{"version", register(newVersion, runVersion)},
	}
}

// registration is a command that is built when it is needed: flags and completions
// of all of them take longer than the work of a small one.
type registration struct {
	name  string
	build builder
}

type builder func(*App) *cobra.Command

// register joins a command's flag reader with the function that does its work.
func register[O any](build func(*App, func(context.Context, *App, O) error) *cobra.Command, run func(context.Context, *App, O) error) builder {
	return func(a *App) *cobra.Command { return build(a, run) }
}

// needed are the commands that an invocation can reach: the one that its first
// argument names, all of them where it names none (help, completion, a flag, a typo).
func needed(args []string) []registration {
	all := commands()
	for i, c := range all {
		if len(args) > 0 && args[0] == c.name {
			return all[i : i+1]
		}
	}
	return all
}
