// Package version says what was built from what.
package version

import (
	"runtime"
	"runtime/debug"
)

// Set by the linker in releases: -X deepseek/internal/version.version=…
var version, commit string

// Build says what was built from what.
type Build struct{ Version, Commit, Go, Platform string }

// String is the line that `deepseek version` prints.
func (b Build) String() string {
	return "deepseek " + b.Version + " (" + b.Commit + ", " + b.Go + ", " + b.Platform + ")"
}

// Current is this program's build: what the linker was told, else what the Go
// tool noted.
func Current() Build {
	info, _ := debug.ReadBuildInfo() // nil in some test binaries
	return describe(version, commit, info)
}

func describe(version, commit string, info *debug.BuildInfo) Build {
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
