package permission

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// family are commands of which a person who has seen one knows what the others
// can do: a program, its subcommand, and the options that neither name a program
// to run, nor a file to write, nor a setting. All other options ask again.
type family struct {
	words   []string
	options []string // that take no value, or one behind a "="
	valued  []string // that take the next word where there is no "="
}

var (
	goOptions    = []string{"-v", "-x", "-n", "-race", "-msan", "-asan", "-cover", "-trimpath"}
	goValued     = []string{"-tags", "-p"}
	cargoOptions = []string{
		"--release", "-r", "--workspace", "--all", "--all-targets", "--all-features", "--no-default-features", "--lib", "--bins", "--tests", "--examples", "--benches", "--doc",
		"-v", "-q", "--verbose", "--quiet", "--no-run", "--no-fail-fast", "--locked", "--offline", "--frozen", "--keep-going",
	}
	cargoValued   = []string{"-p", "--package", "--exclude", "-F", "--features", "--bin", "--test", "--example", "--bench", "-j", "--jobs", "--profile"}
	pytestOptions = []string{
		"-x", "-v", "-vv", "-q", "-qq", "-s", "-l", "-ra", "-rA", "-rs", "--exitfirst", "--verbose", "--quiet", "--showlocals", "--lf", "--ff", "--sw", "--last-failed", "--failed-first", "--stepwise",
		"--no-header", "--no-summary", "--collect-only", "--co", "--disable-warnings", "--durations", "--maxfail", "--tb",
	}
	pytestValued = []string{"-k", "-m", "-n", "-r", "--durations", "--maxfail", "--tb"}
	gitShows     = []string{
		"-p", "-s", "-w", "-b", "-M", "-C", "--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--patch", "--no-patch", "--raw", "--summary", "--word-diff", "--no-color",
		"--unified", "-U0", "-U1", "-U3", "-U5", "-U10", "--no-ext-diff", "--no-textconv", "--", "--find-renames", "--ignore-all-space",
	}
	gitLogs = append([]string{
		"--oneline", "--graph", "--all", "--decorate", "--no-merges", "--merges", "--follow", "--reverse", "--first-parent", "--abbrev-commit", "--max-count", "--since", "--until",
		"--author", "--grep", "--format", "--pretty", "--date",
		"-1", "-2", "-3", "-5", "-10", "-15", "-20", "-30", "-50", "-100",
	}, gitShows...)
	families = []family{
		{[]string{"go", "build"}, goOptions, goValued},
		{[]string{"go", "vet"}, goOptions, goValued},
		{[]string{"go", "test"}, append([]string{
			"-short", "-failfast", "-json", "-benchmem", "-fullpath", "-vet=off", "-count", "-timeout", "-run", "-skip", "-bench", "-benchtime", "-shuffle", "-parallel", "-cpu",
			"-covermode", "-coverpkg",
		}, goOptions...), append([]string{
			"-count", "-timeout", "-run", "-skip", "-bench", "-benchtime", "-fuzztime", "-shuffle", "-parallel", "-cpu", "-list", "-covermode", "-coverpkg",
		}, goValued...)},
		{[]string{"cargo", "build"}, cargoOptions, cargoValued},
		{[]string{"cargo", "check"}, cargoOptions, cargoValued},
		{[]string{"cargo", "clippy"}, cargoOptions, cargoValued},
		{[]string{"cargo", "test"}, cargoOptions, cargoValued},
		{[]string{"pytest"}, pytestOptions, pytestValued},
		{[]string{"python", "-m", "pytest"}, pytestOptions, pytestValued},
		{[]string{"python3", "-m", "pytest"}, pytestOptions, pytestValued},
		{[]string{"git", "status"}, []string{"-s", "--short", "-b", "-sb", "--branch", "--porcelain", "--long", "-u", "-uno", "-uall", "--untracked-files", "--ignored", "--"}, nil},
		{[]string{"git", "diff"}, append([]string{"--cached", "--staged", "--check", "--exit-code"}, gitShows...), nil},
		{[]string{"git", "log"}, gitLogs, []string{"-n", "--max-count", "--since", "--until", "--author", "--grep"}},
		{[]string{"git", "show"}, gitLogs, nil},
		{[]string{"git", "add"}, []string{"-A", "-u", "-v", "-n", "--all", "--update", "--verbose", "--dry-run", "-N", "--intent-to-add", "--"}, nil},
		{
			[]string{"git", "commit"},
			[]string{"-a", "--all", "-q", "--quiet", "-v", "-s", "--signoff", "--allow-empty", "--no-edit", "--dry-run", "--message", "--"},
			[]string{"-m", "-am", "--message"},
		},
	}
)

var (
	// plainWord is neither an option nor anything that the shell or the program
	// takes for more than a name: no pattern, no "@file", no "~user".
	plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_./:,+=@%^~-]*$`) })
	// plainValue may be quoted as a whole: then the shell changes nothing.
	plainValue = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^([A-Za-z0-9_./:,+=@%^-]*|'[^']*'|\"[^\"\\\\`$]*\")$")
	})
)

// familyOf is the family that the words belong to.
func familyOf(words []string) (family, bool) {
	for _, f := range families {
		if len(words) >= len(f.words) && slices.Equal(words[:len(f.words)], f.words) && f.takes(words[len(f.words):]) {
			return f, true
		}
	}
	return family{}, false
}

// takes tells whether all arguments are such as the family may have.
func (f family) takes(args []string) bool {
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		switch {
		case !strings.HasPrefix(args[i], "-"):
			if !plainWord().MatchString(args[i]) || slices.Contains(strings.Split(args[i], "/"), "..") {
				return false
			}
		case slices.Contains(f.options, args[i]):
			// Behind an option that may have a value as well, a word is that value
			// or an argument: both are looked at in the same way.
			if i+1 < len(args) && slices.Contains(f.valued, args[i]) && !strings.HasPrefix(args[i+1], "-") {
				if i++; !plainValue().MatchString(args[i]) {
					return false
				}
			}
		case joined:
			if !slices.Contains(f.options, name) && !slices.Contains(f.valued, name) || !plainValue().MatchString(value) {
				return false
			}
		case slices.Contains(f.valued, args[i]):
			if i++; i == len(args) || strings.HasPrefix(args[i], "-") || !plainValue().MatchString(args[i]) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// grant is what "yes, for this session" covers: the commands of a family, or
// this one alone, in the folder that it was given for: elsewhere the same words
// may run something else. The zero value covers nothing.
type grant struct {
	text  string // as the person is shown it
	words []string
	exact bool
	dir   string
}

// offer is the grant that a person can give with a yes to this command in dir.
// What is not simple has none.
func (l commandLine) offer(dir string) grant {
	if len(l.words) == 0 {
		return grant{}
	}
	if f, ok := familyOf(l.words); ok {
		return grant{text: strings.Join(f.words, " ") + ", with any arguments", words: f.words, dir: filepath.Clean(dir)}
	}
	return grant{text: l.text, words: l.words, exact: true, dir: filepath.Clean(dir)}
}

func (g grant) covers(l commandLine, dir string) bool {
	if len(g.words) == 0 || g.dir != filepath.Clean(dir) {
		return false
	}
	if g.exact {
		return slices.Equal(g.words, l.words)
	}
	f, ok := familyOf(l.words)
	return ok && slices.Equal(f.words, g.words)
}

// grants are the commands that a person has allowed for the session. They are
// kept in memory only: a resume asks again. mu owns list.
type grants struct {
	mu   sync.Mutex
	list []grant
}

func (g *grants) add(one grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, one)
}

func (g *grants) cover(l commandLine, dir string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(g.list, func(one grant) bool { return one.covers(l, dir) })
}
