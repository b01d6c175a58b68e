package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"deepseek/internal/config"
	"deepseek/internal/model"
	"deepseek/internal/permission"
	"deepseek/internal/redact"
	"deepseek/internal/remote"
)

type doctorOptions struct {
	online   bool
	settings map[string]string
}

func newDoctor(a *App, run func(context.Context, *App, doctorOptions) error) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a run needs, and say what to do",
		Long:  "Check the key, the server, the home directory, the control sockets, the terminal and the kernel's sandbox.\nNothing is sent anywhere without --online.",
		Example: `  deepseek doctor
  deepseek doctor --model demo`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.settings = given(cmd.Flags())
			return run(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.online, "online", false, "ask the server for its models, with the key")
	addSettings(cmd, "model", "base_url")
	return cmd
}

// finding is the outcome of one check.
type finding struct {
	name   string
	bad    bool
	words  string
	advice string // what to do; "" where nothing is
}

func runDoctor(ctx context.Context, a *App, o doctorOptions) error {
	cfg, err := a.Load(o.settings, false)
	if err != nil {
		return err
	}
	key, findings := a.checkKey(ctx, cfg)
	findings = append(findings, checkServer(ctx, cfg, key, o.online), checkHome(cfg.Home), checkSockets(a), checkTerminal(a), checkSandbox())
	failed := 0
	for _, f := range findings {
		mark := "ok  "
		switch {
		case f.bad:
			mark = "bad "
			failed++
		case f.advice != "":
			mark = "note"
		}
		a.Printf("%s  %-8s  %s\n", mark, f.name, a.visible(f.words))
		if f.advice != "" {
			a.Printf("                %s\n", a.visible(f.advice))
		}
	}
	if failed > 0 {
		return &Coded{Exit: ExitFailed, Code: CodeFailed, Message: fmt.Sprintf("%d of %d checks failed", failed, len(findings)), Hint: "what to do is said under each"}
	}
	return nil
}

// offline tells whether the model needs neither key nor server.
func offline(name string) bool {
	return name == model.Demo || strings.HasPrefix(name, model.ScriptPrefix)
}

func (a *App) checkKey(ctx context.Context, cfg *config.Config) (string, []finding) {
	f := finding{name: "key"}
	if offline(cfg.Model) {
		f.words = "the model " + cfg.Model + " needs none"
		return "", []finding{f}
	}
	key, err := a.findKey(ctx, cfg)
	switch {
	case errors.Is(err, config.ErrNoKey):
		f.bad, f.words, f.advice = true, "there is none", "set "+config.KeyVariable+", or key_file in "+cfg.UserFile+"; or use --model demo"
	case err != nil:
		message, _, _ := strings.Cut(err.Error(), "\n")
		f.bad, f.words, f.advice = true, message, "correct it in "+cfg.UserFile
	case !redact.New(key).Replaces():
		f.words, f.advice = "found", fmt.Sprintf("it has fewer than %d bytes, or is an ordinary word, so it is not taken out of logs and output; is it whole?", redact.MinLength)
	default:
		f.words = "found"
	}
	return key, []finding{f}
}

func checkServer(ctx context.Context, cfg *config.Config, key string, online bool) finding {
	f := finding{name: "server", words: cfg.BaseURL}
	switch {
	case offline(cfg.Model):
		f.words = "the model " + cfg.Model + " needs none"
	case !online:
		f.words += " (not asked; --online asks it)"
	case key == "":
		f.words += " (not asked: there is no key)"
	default:
		ids, err := askModels(ctx, http.DefaultClient, cfg.BaseURL, key)
		if err != nil {
			message, _, _ := strings.Cut(err.Error(), "\n")
			f.bad, f.words, f.advice = true, cfg.BaseURL+": "+message, "check base_url, the key and the network"
			return f
		}
		f.words += fmt.Sprintf(" answers, with %d %s", len(ids), plural(len(ids), "model"))
	}
	return f
}

func checkHome(home string) finding {
	f := finding{name: "home", words: home}
	info, err := os.Stat(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.words += " (made by the first run)"
		if why := cannotMake(home); why != "" {
			f.bad, f.words, f.advice = true, home+" cannot be made: "+why, "choose another with --home"
		}
	case err != nil:
		f.bad, f.words, f.advice = true, fmt.Sprintf("%s: %v", home, reason(err)), "make it readable for you, or choose another with --home"
	case !info.IsDir():
		f.bad, f.words, f.advice = true, home+" is no directory", "choose another with --home"
	case unix.Access(home, unix.W_OK|unix.X_OK) != nil:
		f.bad, f.words, f.advice = true, home+" cannot be written to", "make it writable for you, or choose another with --home"
	case info.Mode().Perm()&0o077 != 0:
		f.words, f.advice = fmt.Sprintf("%s has mode %#o", home, info.Mode().Perm()), "others can look into it; chmod 700 "+quote(home)
	}
	return f
}

// cannotMake says why a folder that is not there cannot be made, "" if it can.
// It makes none.
func cannotMake(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err != nil:
			return fmt.Sprintf("%s: %v", at, reason(err))
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if info, err = os.Stat(at); err != nil {
				return at + " is a link to what is not there"
			}
		}
		var system unix.Statfs_t
		switch {
		case !info.IsDir():
			return at + " is no directory"
		case unix.Access(at, unix.W_OK|unix.X_OK) != nil:
			return at + " cannot be written to"
		case unix.Statfs(at, &system) == nil && holdsNoFolders(system):
			return at + " is the system's and holds no folders of yours"
		}
		return ""
	}
}

func checkSockets(a *App) finding {
	dir, err := remote.Dir(a.Getenv)
	if err != nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		return finding{name: "sockets", bad: true, words: message, advice: "set XDG_RUNTIME_DIR or TMPDIR to a private folder with a short path"}
	}
	return finding{name: "sockets", words: dir}
}

func checkTerminal(a *App) finding {
	f := finding{name: "terminal", words: fmt.Sprintf("%d columns", a.Width())}
	switch why := a.noPrompt(); {
	case why != "":
		f.words, f.advice = "there is none to ask in: "+why, "questions are answered from another shell: deepseek answer"
	case !a.Cursor():
		f.words, f.advice = "TERM="+a.Getenv("TERM")+" has no cursor control", "cards are plain numbered lines here"
	}
	return f
}

func checkSandbox() finding {
	if ok, why := permission.Supported(); !ok {
		return finding{name: "sandbox", words: why, advice: "commands need your approval here, or --permission full-access; see docs/permissions.md"}
	}
	return finding{name: "sandbox", words: "the kernel holds commands to the workspace"}
}
