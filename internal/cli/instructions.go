package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deepseek/internal/engine"
	"deepseek/internal/permission"
	"deepseek/internal/view"
)

// instructionsFile is what the files are called in which users and projects
// instruct agents.
const instructionsFile = "AGENTS.md"

// instructions is the text that goes ahead of the first task: the user's own
// file, then those of the folders from the workspace's root to where tools work,
// the nearest last. What cannot be read is told and left out.
func (o *owner) instructions() string {
	var files []engine.Instruction
	seen := map[string]bool{} // a home inside the workspace has its file once
	add := func(path string, stat func() (fs.FileInfo, error), open func() (*os.File, error)) {
		if seen[path] {
			return
		}
		seen[path] = true
		text, odd, err := readInstructions(stat, open)
		if odd != "" {
			o.app.Warnf("deepseek: warning: %s: %s\n", view.OneLine(path), odd)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			o.app.Warnf("deepseek: warning: %s is left out: %v\n", view.OneLine(path), reason(err))
		default:
			files = append(files, engine.Instruction{Path: path, Text: text})
		}
	}
	own := filepath.Join(o.cfg.Home, instructionsFile)
	add(own, func() (fs.FileInfo, error) { return os.Stat(own) }, func() (*os.File, error) { return os.Open(own) })

	top, err := permission.Workspace(o.cwd, o.app.Getenv("HOME"))
	if err != nil {
		o.app.Warnf("deepseek: warning: no %s was looked for in the project: %v\n", instructionsFile, reason(err))
		return engine.InstructionsText(files)
	}
	// A handle on the root: a link in the project leads to no file outside it.
	root, err := os.OpenRoot(top)
	if err != nil {
		o.app.Warnf("deepseek: warning: no %s was looked for in the project: %v\n", instructionsFile, reason(err))
		return engine.InstructionsText(files)
	}
	defer func() { _ = root.Close() }() // read only
	for _, dir := range foldersTo(top, o.cwd) {
		name := filepath.Join(dir, instructionsFile)
		add(filepath.Join(top, name), func() (fs.FileInfo, error) { return root.Stat(name) }, func() (*os.File, error) { return root.Open(name) })
	}
	return engine.InstructionsText(files)
}

// foldersTo are the folders from top to dir, relative to top, both included.
func foldersTo(top, dir string) []string {
	folders := []string{"."}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // as top is
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." || !filepath.IsLocal(rel) {
		return folders
	}
	parts := strings.Split(rel, string(filepath.Separator))
	for i := range parts {
		folders = append(folders, filepath.Join(parts[:i+1]...))
	}
	return folders
}

// readInstructions reads as much as can count.
func readInstructions(stat func() (fs.FileInfo, error), open func() (*os.File, error)) (text, odd string, err error) {
	info, err := stat() // first: opening a pipe would wait for its writer
	if err != nil {
		return "", "", err
	}
	if !info.Mode().IsRegular() {
		return "", "", errors.New("it is no regular file")
	}
	f, err := open()
	if err != nil {
		return "", "", err
	}
	defer func() { _ = f.Close() }() // read only
	data, err := io.ReadAll(io.LimitReader(f, engine.MaxInstructions+1))
	if err != nil {
		return "", "", err
	}
	return engine.ReadInstruction(data)
}
