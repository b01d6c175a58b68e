package session

import "strconv"

// encode is what Marshal would make of the message by way of encoding/json, which
// holds it three times over meanwhile. An answer may have megabytes.
func (m AssistantMessage) encode() ([]byte, error) {
	source, err := Marshal(m.Message.Source)
	if err != nil {
		return nil, err
	}
	var usage []byte
	if m.Usage != nil {
		if usage, err = Marshal(m.Usage); err != nil {
			return nil, err
		}
	}
	room := len(source) + len(usage) + 256
	for _, b := range m.Message.Content {
		room += b.room()
	}
	out := append(make([]byte, 0, room), `{"turn":`...)
	out = strconv.AppendInt(out, int64(m.Turn), 10)
	out = strconv.AppendInt(append(out, `,"step":`...), int64(m.Step), 10)
	out = appendString(append(out, `,"message":{"id":`...), m.Message.ID)
	out = appendString(append(out, `,"role":`...), m.Message.Role)
	out = append(out, `,"content":`...)
	if m.Message.Content == nil {
		out = append(out, `null`...)
	} else {
		out = append(out, '[')
		for i, b := range m.Message.Content {
			if i > 0 {
				out = append(out, ',')
			}
			out = b.appendJSON(out)
		}
		out = append(out, ']')
	}
	out = append(append(append(out, `,"source":`...), source...), '}')
	if m.Usage != nil {
		out = append(append(out, `,"usage":`...), usage...)
	}
	if m.Interrupted {
		out = append(out, `,"interrupted":true`...)
	}
	return append(out, '}'), nil
}
