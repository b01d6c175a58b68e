package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// commands are the commands in the order in which help lists them. Adding one is
// a file and a line here.
func commands() []registration {
	return []registration{
		register(newRun, runRun),
		register(newAnswer, runAnswer),
		register(newQuestions, runQuestions),
		register(newAttach, runAttach),
		register(newSend, runSend),
		newSessions,
		register(newGoal, runGoal),
		register(newShowCommand, runShow),
		register(newRPC, runRPC),
		register(newACP, runACP),
		register(newModels, runModels),
		newConfig,
		register(newDoctor, runDoctor),
		register(newCompletion, runCompletion),
		register(newVersion, runVersion),
	}
}

type registration func(*App) *cobra.Command

// register joins a command's flag reader with the function that does its work.
func register[O any](build func(*App, func(context.Context, *App, O) error) *cobra.Command, run func(context.Context, *App, O) error) registration {
	return func(a *App) *cobra.Command { return build(a, run) }
}
