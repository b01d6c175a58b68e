package acp

import (
	"cmp"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// promptText makes the message of a prompt: text and links stand where the
// person put them, and what is embedded follows below.
func promptText(blocks []sdk.ContentBlock) (string, error) {
	var text, below strings.Builder
	for i, b := range blocks {
		switch {
		case b.Text != nil:
			text.WriteString(b.Text.Text)
		case b.ResourceLink != nil:
			fmt.Fprintf(&text, "[%s](%s)", cmp.Or(b.ResourceLink.Name, lastPart(b.ResourceLink.Uri)), b.ResourceLink.Uri)
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			r := b.Resource.Resource.TextResourceContents
			fmt.Fprintf(&text, "[%s](%s)", lastPart(r.Uri), r.Uri)
			fmt.Fprintf(&below, "\n\n<context uri=%q>\n%s\n</context>", r.Uri, r.Text)
		default:
			return "", invalidParams(fmt.Sprintf("prompt[%d]", i), "only text, links and embedded text are taken")
		}
	}
	whole := text.String() + below.String()
	if strings.TrimSpace(whole) == "" {
		return "", invalidParams("prompt", "is empty")
	}
	return whole, nil
}

func lastPart(uri string) string {
	uri = strings.TrimRight(uri, "/")
	return uri[strings.LastIndexByte(uri, '/')+1:]
}
