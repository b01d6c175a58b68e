// Command deepseek is a coding agent for the terminal and for CI.
package main

import (
	"os"

	"deepseek/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, cli.Std(), cli.TakeEnviron()))
}
