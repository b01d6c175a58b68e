package version

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestWhatTheLinkerSaysGoesFirst(t *testing.T) {
	tool := &debug.BuildInfo{Main: debug.Module{Version: "v0.9.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"},
	}}
	for name, c := range map[string]struct {
		version, commit string
		info            *debug.BuildInfo
		want            string
	}{
		"the linker":        {"1.2.3", "abc", tool, "1.2.3 (abc"},
		"the Go tool":       {"", "", tool, "v0.9.0 (0123456789ab+changes"},
		"some of both":      {"1.2.3", "", tool, "1.2.3 (0123456789ab+changes"},
		"a work tree":       {"", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "dev (unknown commit"},
		"nobody":            {"", "", nil, "dev (unknown commit"},
		"a commit, no more": {"", "abc", nil, "dev (abc"},
	} {
		want := "deepseek " + c.want + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
		if got := describe(c.version, c.commit, c.info).String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestWhatCannotBeWrittenIsLeftToTheCommand(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	if !write(int(out.Fd()), []byte("x")) {
		t.Error("a pipe with a reader")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if write(int(out.Fd()), []byte("x")) {
		t.Error("a pipe without one")
	}
}
