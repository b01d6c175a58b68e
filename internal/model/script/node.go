package script

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"deepseek/internal/session"
)

// parseJSON makes nodes of valid JSON. The YAML parser would refuse some of it:
// tabs, and surrogate pairs written as escapes.
func parseJSON(data []byte) (*yaml.Node, error) {
	p := jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	p.dec.UseNumber()
	return p.value()
}

type jsonParser struct {
	data []byte
	dec  *json.Decoder
	at   int64 // where line was counted to
	line int
}

func (p *jsonParser) value() (*yaml.Node, error) {
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	end := p.dec.InputOffset()
	p.line += bytes.Count(p.data[p.at:end], []byte("\n"))
	p.at = end
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: p.line}
	switch v := tok.(type) {
	case json.Delim:
		n.Kind = yaml.SequenceNode
		if v == '{' {
			n.Kind = yaml.MappingNode
		}
		for p.dec.More() { // the keys of an object are tokens like any other
			c, err := p.value()
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		_, err = p.dec.Token() // the closing one
		return n, err
	case string:
		n.Tag, n.Value, n.Style = "!!str", v, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = "!!float", v.String()
		if _, err := v.Int64(); err == nil {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// Bounds of arguments; aliases can make much of little.
const (
	maxDepth     = 100
	maxArguments = 16 << 20 // bytes of JSON
	maxNodes     = 100_000  // of all arguments of a script
)

// json writes a node as JSON, the keys in the order of the file.
func (r *reader) json(b *bytes.Buffer, n *yaml.Node, depth int) {
	n = resolve(n)
	if depth > maxDepth {
		r.fail(n, "arguments are nested more than %d deep", maxDepth)
	}
	if b.Len() > maxArguments {
		r.fail(n, "arguments are longer than %d bytes", maxArguments)
	}
	if r.nodes++; r.nodes > maxNodes {
		r.fail(n, "the arguments of this script hold more than %d values", maxNodes)
	}
	if r.err != nil {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content) && r.err == nil; i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			r.scalar(b, n.Content[i], n.Content[i].Value)
			b.WriteByte(':')
			r.json(b, n.Content[i+1], depth+1)
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if r.err != nil {
				return
			}
			if i > 0 {
				b.WriteByte(',')
			}
			r.json(b, c, depth+1)
		}
		b.WriteByte(']')
	default:
		var v any = json.Number(n.Value) // of JSON, digit for digit
		if tag := n.ShortTag(); tag == "!!str" || tag == "!!timestamp" {
			v = n.Value
		} else if !json.Valid([]byte(n.Value)) || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
			if err := n.Decode(&v); err != nil {
				r.fail(n, "arguments: %v", err)
				return
			}
		}
		r.scalar(b, n, v)
	}
}

func (r *reader) scalar(b *bytes.Buffer, n *yaml.Node, v any) {
	raw, err := session.Marshal(v)
	if err != nil {
		r.fail(n, "arguments: %v", err)
		return
	}
	b.Write(raw)
}
