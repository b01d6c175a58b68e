package files

import (
	"context"
	"crypto/sha256"
	_ "embed" // the texts
	"encoding/hex"
	"fmt"
	"hash"

	"deepseek/internal/session"
	"deepseek/internal/tool"
)

var (
	//go:embed read.md
	readText string
	//go:embed read.json
	readSchema string
)

type readArgs struct {
	FilePath string `json:"file_path"`
	Offset   int    `json:"offset"`
	Limit    int    `json:"limit"`
}

// Limits of one call of read.
const (
	maxLines     = 2_000
	maxLineRunes = 2_000
	maxBytes     = 50_000 // notes included
)

func (e Env) readTool() tool.Tool {
	return tool.Define(tool.Definition{
		Name: "read", Text: readText, Schema: readSchema,
		Traits: tool.Traits{Parallel: true, ReadOnly: true},
	}, e.read)
}

func (e Env) read(ctx context.Context, _ tool.Call, in readArgs) tool.Result {
	p, err := e.resolve(in.FilePath)
	if err == nil && p.real == "" {
		err = p.missing()
	}
	if err != nil {
		return result(err)
	}
	if err := e.Guard.ForRead(p.real); err != nil {
		return result(err)
	}
	f, fi, err := p.openRegular()
	if err != nil {
		return result(err)
	}
	defer f.Close() //nolint:errcheck // opened for reading

	first, limit := max(in.Offset, 1), maxLines
	if in.Limit > 0 {
		limit = min(in.Limit, maxLines)
	}
	pg := newPager(first, limit)
	var sum hash.Hash
	if fi.Size() <= maxWhole {
		sum = sha256.New()
	}
	var size int64
	kind := ""
	err = chunks(ctx, f, func(part []byte) bool {
		if size == 0 {
			if kind = binary(part); kind != "" {
				return false
			}
		}
		size += int64(len(part))
		if sum != nil {
			sum.Write(part)
			if size > maxWhole {
				sum = nil // it grew meanwhile
			}
		}
		pg.feed(part)
		return sum != nil || !pg.done
	})
	if err != nil {
		return result(p.failed(err))
	}
	if kind != "" {
		length := ""
		if fi.Size() > 0 { // files under /proc do not know
			length = fmt.Sprintf(", %d bytes", fi.Size())
		}
		return tool.Errorf(CodeNotText, "%s is %s%s; read shows UTF-8 text", p.shown, kind, length)
	}
	whole := sum != nil || !pg.done
	pg.end()
	if pg.total < first && pg.total > 0 {
		return tool.Errorf(tool.CodeInvalidArguments, "offset %d is past the end: %s has %d lines", first, p.shown, pg.total)
	}
	res := tool.Result{Content: tool.Printable(pg.text(p.shown, whole)), Meta: &session.ToolMeta{}}
	if sum == nil {
		res.Content += fmt.Sprintf("\n(larger than %d MB: write and edit refuse it)", maxWhole>>20)
		return res
	}
	seen := session.Observed{Path: p.real, Hash: hex.EncodeToString(sum.Sum(nil))}
	e.Observed.set(seen.Path, seen.Hash)
	res.Meta.Observed = []session.Observed{seen}
	return res
}
