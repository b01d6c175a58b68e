package acp

import (
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"deepseek/internal/question"
	"deepseek/internal/session"
)

// formRequest is elicitation/create in the form mode. The SDK's own type lacks
// the session, which the protocol wants. That part of the protocol is not stable
// yet: a client that does not say that it has it never gets one.
type formRequest struct {
	Meta       map[string]any                `json:"_meta,omitempty"`
	SessionID  sdk.SessionId                 `json:"sessionId"`
	ToolCallID sdk.ToolCallId                `json:"toolCallId"`
	Mode       string                        `json:"mode"`
	Message    string                        `json:"message"`
	Schema     sdk.UnstableElicitationSchema `json:"requestedSchema"`
}

// requestForm sends the whole batch to the client, as one form.
func (c *card) requestForm() *asked {
	req := formRequest{
		SessionID: c.place.id, ToolCallID: c.call(), Mode: "form", Message: c.message(),
		Schema: sdk.UnstableElicitationSchema{Type: sdk.UnstableElicitationSchemaTypeObject, Properties: fields(c.Questions)},
	}
	return send(c.place.server, sdk.ClientMethodElicitationCreate, func(meta map[string]any) any {
		req.Meta = meta
		return req
	}, func(res sdk.UnstableCreateElicitationResponse) reply {
		switch { // the SDK takes what it does not know for one of these
		case res.Accept != nil && res.Accept.Action == "accept":
			answers, err := c.filled(res.Accept.Content)
			return reply{answers: answers, unfit: err}
		case res.Decline != nil && res.Decline.Action == "decline": // the person will not say: all is skipped
			answers, err := c.filled(nil)
			return reply{answers: answers, unfit: err, skipped: true}
		}
		return reply{closed: res.Cancel != nil && res.Cancel.Action == "cancel"}
	})
}

// message stands above the form.
func (c *card) message() string {
	text := headed(c.Questions[0])
	if n := len(c.Questions); n > 1 {
		text = fmt.Sprintf("%d questions", n)
	}
	if left := c.left(); left != "" {
		text += "\n\n" + left
	}
	return text
}

// The fields of a question: one for what is selected, or for the text where there
// are no options, and one for words beside the options. They are numbered, since
// an object has no order but that of its names.
func field(i int) string { return fmt.Sprintf("q%03d", i+1) }
func other(i int) string { return field(i) + "_other" }

// formOption is one option; its value is the label.
type formOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// fields are the fields of a batch. None is required: an empty one skips its question.
func fields(questions []session.Question) map[string]any {
	all := map[string]any{}
	for i, q := range questions {
		f := map[string]any{"type": "string", "title": q.Question}
		if q.Header != "" {
			f["title"], f["description"] = q.Header, q.Question
		}
		all[field(i)] = f
		if len(q.Options) == 0 {
			continue
		}
		var options []formOption
		for _, o := range q.Options {
			title := o.Label
			if o.Description != "" {
				title += ": " + o.Description
			}
			options = append(options, formOption{o.Label, title})
		}
		words := "Or in your own words"
		if q.MultiSelect {
			f["type"], f["items"] = "array", map[string]any{"anyOf": options}
			words = "And in your own words"
		} else {
			f["oneOf"] = options
		}
		all[other(i)] = map[string]any{"type": "string", "title": words}
	}
	return all
}

// filled reads a form: an answer to every question, or what is wrong with it. One
// that has fields and none of those that were asked for is another form. Words beside a single choice go before it: a form may
// select by itself, but it does not write.
func (c *card) filled(content map[string]any) ([]session.Answer, error) {
	known := 0
	batch := make([]session.Answer, len(c.Questions))
	for i, q := range c.Questions {
		for _, name := range []string{field(i), other(i)} {
			value, has := content[name]
			if has {
				known++
			}
			if _, ok := texts(value); !ok {
				return nil, fmt.Errorf("the field %s is neither text nor a list of texts", name)
			}
		}
		selected, _ := texts(content[field(i)]) // which is known to hold texts
		words, _ := texts(content[other(i)])
		if len(q.Options) == 0 {
			selected, words = nil, selected
		}
		a := session.Answer{ID: q.ID, Selected: []string{}, Custom: strings.TrimSpace(strings.Join(words, "\n"))}
		if a.Custom == "" || q.MultiSelect {
			for _, s := range selected {
				if s != "" { // an empty choice is none
					a.Selected = append(a.Selected, s)
				}
			}
		}
		batch[i] = a
	}
	if known == 0 && len(content) > 0 {
		return nil, fmt.Errorf("the form has none of its fields, %s and so on", field(0))
	}
	if bad := question.CheckAnswers(c.Kind, c.Questions, batch); bad != nil {
		return nil, bad
	}
	return batch, nil
}

// texts are the texts of a field; false if it holds anything else.
func texts(value any) ([]string, bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		var all []string
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, false
			}
			all = append(all, s)
		}
		return all, true
	}
	return nil, false
}
