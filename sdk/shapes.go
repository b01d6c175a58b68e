package deepseek

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Shapes of what the server says. A version is a number that must be this one.
type (
	members map[string]any // of an object; a ? behind the name: it may be left out
	list    struct{ of any }
	kind    string
	version int
)

const (
	aText    kind = "string"
	aWhole   kind = "whole number"
	aNumber  kind = "number"
	aFlag    kind = "boolean"
	anObject kind = "object"
	aList    kind = "list"
)

var (
	aLine = members{
		"method?": aText, "params?": anObject,
		"error?": members{"code": aWhole, "message": aText, "data?": members{"code?": aText, "path?": aText}},
	}
	anEvent   = members{"seq": aWhole, "type": aText, "time": aWhole, "data": anObject}
	questions = list{members{
		"id": aText, "question": aText, "header?": aText, "detail?": aText, "multi_select?": aFlag,
		"options?": list{members{"label": aText, "description?": aText}},
	}}
)

// results are the shapes of what requests are answered with.
var results = map[string]members{
	"initialize":           {"protocolVersion": version(1)},
	"session/prompt":       {"sessionId": aText, "messageId": aText},
	"session/steer":        {"messageId": aText},
	"session/cancel":       {},
	"session/read":         {"events": list{anEvent}, "nextSeq": aWhole, "more": aFlag},
	"session/list":         {"sessions": list{anObject}},
	"session/close":        {},
	"questions/list":       {"active": list{members{"callId": aText, "state": aText, "queued": aFlag, "questions": questions, "answer?": aText}}},
	"questions/attachWait": {"attached": aFlag},
	"questions/detach":     {},
	"questions/respond":    {"accepted": aFlag},
	"questions/answer":     {"accepted": aFlag},
	"questions/withdraw":   {"withdrawn": aFlag},
	"shutdown":             {},
}

// notes are the shapes of the parameters of notifications; others are of aNote.
var (
	notes = map[string]members{
		NoteEvent:     {"sessionId": aText, "event": anEvent},
		NoteStatus:    {"sessionId": aText, "status": aText},
		NoteQuestion:  {"sessionId": aText, "callId": aText, "kind": aText, "questions": questions, "timed": aFlag},
		noteWait:      {"sessionId": aText, "callId": aText, "remainingMs": aWhole},
		noteWaitEnded: {"sessionId": aText, "callId": aText, "outcome": aText},
	}
	aNote = members{"sessionId?": aText}
)

// events are the shapes of the data of events, as far as they are looked into.
var (
	usage = members{
		"inputTokens": aWhole, "cacheReadTokens": aWhole, "outputTokens": aWhole, "reasoningTokens?": aWhole, "costUsd?": aNumber,
	}
	events = map[string]members{
		eventSpliced:         {"inserted?": list{members{"id": aText}}},
		"assistant/message":  {"message": members{"content": list{members{"type": aText, "text?": aText}}}, "usage?": usage},
		"compaction/summary": {"usage?": usage},
		"compaction/end":     {"usage?": usage},
		"approval/decided":   {"decision": aText},
		"turn/end":           {"reason": members{"kind": aText, "error?": members{"code": aText, "message": aText, "status?": aWhole}}},
	}
)

// check tells what of a value is not of its shape.
func check(what string, raw json.RawMessage, shape any) error {
	switch s := shape.(type) {
	case kind:
		if got := kindOf(raw); got != s && (s != aNumber || got != aWhole) {
			return fmt.Errorf("%s is no %s", what, s)
		}
	case version:
		if string(raw) != strconv.Itoa(int(s)) {
			return fmt.Errorf("%s is %s, and this package speaks %d", what, raw, s)
		}
	case list:
		if kindOf(raw) != aList {
			return fmt.Errorf("%s is no %s", what, aList)
		}
		var got []json.RawMessage
		if err := json.Unmarshal(raw, &got); err != nil {
			return err
		}
		for i, v := range got {
			if err := check(fmt.Sprintf("%d of %s", i, what), v, s.of); err != nil {
				return err
			}
		}
	case members:
		if kindOf(raw) != anObject {
			return fmt.Errorf("%s is no %s", what, anObject)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(raw, &got); err != nil {
			return err
		}
		for name, of := range s {
			key, optional := strings.CutSuffix(name, "?")
			if v, there := got[key]; there {
				if err := check(key+" of "+what, v, of); err != nil {
					return err
				}
			} else if !optional {
				return fmt.Errorf("%s of %s is missing", key, what)
			}
		}
	}
	return nil
}

// kindOf tells what a value is, by the way it begins.
func kindOf(raw json.RawMessage) kind {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		return aText
	case '{':
		return anObject
	case '[':
		return aList
	case 't', 'f':
		return aFlag
	}
	if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return aWhole
	}
	if raw[0] != 'n' {
		return aNumber
	}
	return ""
}
