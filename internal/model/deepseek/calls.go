package deepseek

import (
	"encoding/json"
	"slices"
	"strings"

	"deepseek/internal/session"
)

// assembler puts tool calls together from fragments. The wire promises that a
// call has an index, and that its first fragment has id and name; servers keep
// that promise more or less.
type assembler struct {
	calls []*partial
	last  *partial // that the last fragment went to
}

type partial struct {
	index int // -1 where none was sent
	id    string
	name  string
	again string // a name that came once the arguments were whole: of the call that follows, if one does
	args  strings.Builder
	join  joiner

	latest string // fragment that was not empty
	varied bool   // one of them did not begin with the one before, or the first had it all
}

// add takes the fragments of one chunk.
func (a *assembler) add(fragments []fragment) {
	for i, f := range fragments {
		p := a.find(f, i)
		if p != nil && p.whole(f) {
			if p.repeats(f) {
				continue
			}
			if f.name == "" {
				f.name = p.again
			}
			p = nil
		}
		if p == nil {
			p = &partial{index: f.index}
			a.calls = append(a.calls, p)
		}
		a.last = p
		if p.id == "" {
			p.id = f.id
		}
		switch {
		case p.name == "":
			p.name = f.name
		case f.name != "" && p.args.Len() > 0:
			p.again = f.name
		}
		p.args.WriteString(p.join.add(f.arguments))
		if f.arguments != "" {
			p.varied = p.varied || !strings.HasPrefix(f.arguments, p.latest) || p.latest == "" && complete(f.arguments)
			p.latest = f.arguments
		}
	}
}

// arguments are the fragments in a row. Some servers send with each fragment all
// that there is so far: the last one then has it all, and they make no object in a row.
func (p *partial) arguments() string {
	joined := p.args.String() + p.join.end()
	if p.varied || complete(joined) {
		return joined
	}
	var j joiner
	if all := j.add(p.latest) + j.end(); complete(all) {
		return all
	}
	return joined
}

// whole tells whether the call has all its arguments and the fragment begins
// those of another, which some servers do not mark by an index or an id of its
// own. It must have a name: what goes on behind whole arguments without one is
// malformed, and the model is to be told.
func (p *partial) whole(f fragment) bool {
	return (f.name != "" || p.again != "") && strings.HasPrefix(strings.TrimLeft(f.arguments, blanks), "{") && complete(p.args.String())
}

// repeats tells whether the fragment says once more what the call is: a call is
// made once for each id.
func (p *partial) repeats(f fragment) bool {
	return f.id != "" && f.id == p.id && f.name == p.name && strings.Trim(f.arguments, blanks) == strings.Trim(p.args.String(), blanks)
}

// unended tells whether a fragment of another id goes on with the call: some
// servers make up an id for each fragment. One that begins a call has a name, and
// the one before has its arguments by then.
func (p *partial) unended(f fragment) bool {
	return f.name == "" && p.name != "" && !complete(p.args.String())
}

// find returns the call that a fragment goes on, or nil if it begins a new one.
// The fragment is the position-th of its chunk.
func (a *assembler) find(f fragment, position int) *partial {
	if f.index < 0 {
		return a.findWithoutIndex(f, position)
	}
	var latest *partial
	for _, p := range slices.Backward(a.calls) { // of several with an id the last is the open one
		if p.index != f.index {
			continue
		}
		if f.id != "" && p.id == f.id {
			return p
		}
		if latest == nil {
			latest = p
		}
	}
	// Two ids under one index are two calls.
	if latest != nil && f.id != "" && latest.id != "" && !latest.unended(f) {
		return nil
	}
	return latest
}

func (a *assembler) findWithoutIndex(f fragment, position int) *partial {
	switch {
	case f.id != "":
		for _, p := range slices.Backward(a.calls) {
			if p.id == f.id {
				return p
			}
		}
		if a.last != nil && position == 0 && a.last.unended(f) {
			return a.last
		}
		return nil
	case a.last == nil || f.name == "":
		return a.last
	case position > 0 || f.name != a.last.name || complete(a.last.args.String()):
		return nil
	}
	return a.last // a server that repeats the name
}

// finish returns the calls in the model's order: by index if all have one, else
// as they came.
func (a *assembler) finish() []session.Call {
	if !slices.ContainsFunc(a.calls, func(p *partial) bool { return p.index < 0 }) {
		slices.SortStableFunc(a.calls, func(x, y *partial) int { return x.index - y.index })
	}
	var out []session.Call
	for _, p := range a.calls {
		out = append(out, session.Call{
			ID: strings.ToValidUTF8(p.id, "\uFFFD"), Name: strings.ToValidUTF8(p.name, "\uFFFD"),
			Arguments: p.arguments(),
		})
	}
	return out
}

// complete tells whether arguments are one whole JSON object.
func complete(args string) bool {
	args = strings.Trim(args, blanks)
	return strings.HasPrefix(args, "{") && strings.HasSuffix(args, "}") && json.Valid([]byte(args))
}

// blanks are the white space of JSON.
const blanks = " \t\r\n"
