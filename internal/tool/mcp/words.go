package mcp

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What the library puts before an error, and its words for what has better ones.
var (
	summary = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(calling|sending) "[^"]*": |rejected by transport: |connection closed: `)
	})
	contentType = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`unsupported content type ("[^"]*")`) })
	oldVersion  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`unsupported protocol version: ("[^"]*")`) })
)

// words are an error on one bounded line without the key, without Go's types and
// without what is the library's own.
func (f *Family) words(err error) string {
	text := summary().ReplaceAllString(err.Error(), "")
	switch {
	case strings.Contains(text, "cannot unmarshal") || strings.Contains(text, "Go struct field"):
		text = "its answer has another form than the protocol says"
	case text == "EOF" || text == "unexpected EOF":
		text = "it closed its output"
	case contentType().MatchString(text):
		text = fmt.Sprintf("it answers with the content type %s, which is not one of the protocol's", contentType().FindStringSubmatch(text)[1])
	}
	return line(f.env.Key.String(text), 300)
}

// unfit words an answer to the handshake, or to the question for tools, that was
// an answer but no good one; nil where there was none. What becomes of the server
// after that says nothing: it is ended for it.
func unfit(what string, err error) error {
	var refused *jsonrpc.Error
	if errors.As(err, &refused) && !ours(refused) {
		return fmt.Errorf("it answers %s with an error: %s", what, refused.Message)
	}
	if m := oldVersion().FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("it speaks version %s of the protocol, which is not known here", m[1])
	}
	return nil
}
