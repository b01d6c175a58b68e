package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set by the linker in releases: -X deepseek/internal/cli.version=…
var version, commit string

// Build says what was built from what.
type Build struct{ Version, Commit, Go, Platform string }

// String is the line that `deepseek version` prints.
func (b Build) String() string {
	return fmt.Sprintf("deepseek %s (%s, %s, %s)", b.Version, b.Commit, b.Go, b.Platform)
}

// buildVersion takes what the linker was told, else what the Go tool noted.
func buildVersion() Build {
	info, _ := debug.ReadBuildInfo() // nil in some test binaries
	return describeBuild(version, commit, info)
}

func describeBuild(version, commit string, info *debug.BuildInfo) Build {
	b := Build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info != nil {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		changed := ""
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && b.Commit == "":
				b.Commit = s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true" && commit == "":
				changed = "+changes"
			}
		}
		if b.Commit != "" {
			b.Commit += changed
		}
	}
	if b.Version == "" {
		b.Version = "dev"
	}
	if b.Commit == "" {
		b.Commit = "unknown commit"
	}
	return b
}

type versionOptions struct{}

func newVersion(a *App, run func(context.Context, *App, versionOptions) error) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  deepseek version
  deepseek version | cut -d' ' -f2`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a, versionOptions{}) },
	}
}

func runVersion(_ context.Context, a *App, _ versionOptions) error {
	a.Printf("%s\n", buildVersion())
	return nil
}
