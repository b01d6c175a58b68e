package files_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// program makes calls out of bytes.
type program struct {
	w    *world
	data []byte
}

func (p *program) byte() int {
	if len(p.data) == 0 {
		return 0
	}
	b := p.data[0]
	p.data = p.data[1:]
	return int(b)
}

func (p *program) raw() string {
	n := min(p.byte()%24, len(p.data))
	s := string(p.data[:n])
	p.data = p.data[n:]
	return s
}

func pick(p *program, list []string) string { return list[p.byte()%len(list)] }

var names = []string{
	"a.txt", "crlf.txt", "bom.txt", "mixed.txt", "sub", "deep", "c.go", "b.txt", "raw", "bin", "new\nline", "\xff\xfe", "l1", "l2", "l3", "loop", "..", ".", "", "new",
	"hard", "hardkey", "hardconf", ".git", ".gitignore", "o.txt", "in", "config.yaml", "key", "nul\x00", "\xc3\x28", "ünï", "fd", strings.Repeat("x", 255), strings.Repeat("y", 300),
}

// path is one with links, dots and whatever else.
func (p *program) path() string {
	start := pick(p, []string{"", "", "", "", "./", p.w.ws + "/", p.w.dir + "/outside/", p.w.dir + "/home/", "/proc/self/root" + p.w.ws + "/", "/proc/self/root" + p.w.dir + "/outside/", "/proc/self/cwd/", "/", "//", "../outside/", "../ws/", "~/", "/dev/", "/proc/self/", "sub/../../home/"})
	var parts []string
	for range p.byte() % 4 {
		parts = append(parts, pick(p, names))
	}
	switch p.byte() % 12 {
	case 0:
		parts = append(parts, p.raw())
	case 1:
		parts = append(parts, strings.Repeat("d/", []int{9, 30, 2100}[p.byte()%3])+"f")
	default:
		parts = append(parts, pick(p, names))
	}
	return start + strings.Join(parts, "/")
}

func (p *program) text() string {
	words := []string{"one", "two", "three", "a", "aa", "\n", "\r\n", "\r", "\t", " ", "\xEF\xBB\xBF", "é", "\xff", "\x00", "one\n", "one\r\n", "\none", "package c"}
	var b strings.Builder
	for range 1 + p.byte()%4 {
		b.WriteString(pick(p, words))
	}
	if p.byte()%8 == 0 {
		b.WriteString(p.raw())
	}
	return b.String()
}

func (p *program) pattern() string {
	parts := []string{"*", "**", "/", "?", "[a-z]", "[^a]", "[", "]", "{a,b}", "{", "}", "\\", "one", "a.txt", "..", "../outside", "(", ")", "+", "|", "(?i)", "^", "$", ".", "\\b", "\\pL", "{3}", "{1001}", "\xff", "\x00", "é", "HIDDEN", "DISTANT", p.w.dir, "/home/", "config.yaml", "{{", ",", "!"}
	var b strings.Builder
	for range 1 + p.byte()%5 {
		b.WriteString(pick(p, parts))
	}
	if p.byte()%8 == 0 {
		b.WriteString(p.raw())
	}
	return b.String()
}

// link puts a link into the workspace, as a command may.
func (p *program) link() {
	name := p.w.ws + "/" + pick(p, []string{"l1", "l2", "l3", "sub/l1", "loop", "new", "\xff\xfel"})
	target := pick(p, []string{
		"sub", "../outside", "../home", "a.txt", "crlf.txt", "l2", "l1", "loop", "nowhere", "sub/nowhere", p.w.ws, p.w.dir + "/outside/o.txt", p.w.dir + "/outside/nothing", "/", "/proc/self/root",
		"/proc/self/fd/0", "/proc/self/cwd", "../home/key", p.w.dir + "/home", "../ws/sub", "/dev/null", "..", ".",
	})
	if os.Remove(name) != nil && p.byte()%2 == 0 {
		return
	}
	if err := os.Symlink(target, name); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) && !strings.Contains(err.Error(), "not a directory") {
		p.w.t.Log(err)
	}
	p.w.inside = p.w.state(p.w.ws)
}

func (p *program) step() {
	flag := ""
	switch p.byte() % 9 {
	case 0, 1:
		p.link()
	case 2:
		p.w.call("write", map[string]string{"file_path": p.path(), "content": p.text()}, "")
	case 3:
		p.w.call("read", map[string]string{"file_path": p.path()}, "")
	case 4, 5, 6:
		path := p.path()
		if p.byte()%8 > 0 {
			p.w.call("read", map[string]string{"file_path": path}, "")
		}
		if p.byte()%3 == 0 {
			flag = `,"replace_all":true`
		}
		if p.byte()%4 == 0 {
			p.w.call("write", map[string]string{"file_path": path, "content": p.text()}, "")
			return
		}
		p.w.call("edit", map[string]string{"file_path": path, "old_string": p.text(), "new_string": p.text()}, flag)
	case 7:
		p.w.call("glob", p.within(map[string]string{"pattern": p.pattern()}), "")
	case 8:
		args := p.within(map[string]string{"pattern": p.pattern()})
		if p.byte()%2 == 0 {
			args["include"] = p.pattern()
		}
		p.w.call("grep", args, "")
	}
}

func (p *program) within(args map[string]string) map[string]string {
	if p.byte()%2 == 0 {
		args["path"] = p.path()
	}
	return args
}

func (p *program) run() {
	for steps := 0; len(p.data) > 0 && steps < 40; steps++ {
		p.step()
	}
}
