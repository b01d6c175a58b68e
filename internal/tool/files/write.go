package files

import (
	"bytes"
	"context"
	_ "embed" // the texts
	"fmt"
	"os"
	"strings"

	"deepseek/internal/tool"
)

var (
	//go:embed write.md
	writeText string
	//go:embed write.json
	writeSchema string
)

type writeArgs struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

func (e Env) writeTool() tool.Tool {
	return tool.Define(tool.Definition{Name: "write", Text: writeText, Schema: writeSchema}, e.write)
}

func (e Env) write(ctx context.Context, call tool.Call, in writeArgs) tool.Result {
	p, err := e.resolve(in.FilePath)
	if err != nil {
		return result(err)
	}
	if strings.HasSuffix(in.FilePath, "/") {
		return tool.Errorf(tool.CodeInvalidArguments, "file_path %q names a folder; add the file's name", in.FilePath)
	}
	c := change{tool: "write", callID: call.ID, at: p, content: []byte(in.Content)}
	size := fmt.Sprintf("%d bytes, %d lines", len(in.Content), lineCount(in.Content))
	if p.real == "" {
		c.title = "create " + p.shown
		c.done = "Created " + p.shown + " (" + size + ")."
		return e.apply(ctx, c)
	}
	if c.old, err = e.current(ctx, p); err != nil {
		return result(err)
	}
	if bytes.Equal(c.old.content, c.content) {
		return tool.Result{Content: p.shown + " has this content already; nothing was written."}
	}
	c.title = "overwrite " + p.shown
	c.done = "Wrote " + p.shown + " (" + size + ")." + lost(string(c.old.content), in.Content)
	return e.apply(ctx, c)
}

// current reads what is to be changed and refuses what the model has not seen.
func (e Env) current(ctx context.Context, p place) (*version, error) {
	if err := e.Guard.ForRead(p.real); err != nil {
		return nil, err
	}
	if _, ok := e.Observed.get(p.real); !ok {
		// Told before anything is read: it may be large, or no file at all.
		fi, err := os.Stat(p.real)
		if err != nil {
			return nil, p.failed(err)
		}
		if !fi.Mode().IsRegular() {
			return nil, p.notRegular(fi.Mode())
		}
		if fi.Size() <= maxWhole {
			return nil, e.Observed.check(p, "")
		}
	}
	content, hash, err := p.load(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.Observed.check(p, hash); err != nil {
		return nil, err
	}
	return &version{content: content}, nil
}

// lost names what a new content drops that read does not show as text.
func lost(before, after string) string {
	var notes []string
	if strings.HasPrefix(before, string(bom)) && !strings.HasPrefix(after, string(bom)) {
		notes = append(notes, "the byte order mark")
	}
	if strings.Contains(before, "\r\n") && !strings.Contains(after, "\r\n") && strings.Contains(after, "\n") {
		notes = append(notes, "the CRLF line ends")
	}
	if notes == nil {
		return ""
	}
	return " The file has lost " + strings.Join(notes, " and ") + "."
}

func lineCount(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}
