package prompt

// hint names the keys. All of them are there until one was pressed and the card has focus.
func (s *cardState) hint() []string {
	var keys []string
	switch {
	case s.sending:
		return []string{"sending…"}
	case s.reviewing():
		keys = []string{"Enter sends, or goes to a question"}
	case s.late:
		keys = []string{"Enter sends it late"}
	case len(s.card.Questions[s.at].Options) == 0:
		keys = []string{"Enter sends"}
	case s.card.Questions[s.at].MultiSelect:
		keys = []string{"Space marks", "Enter takes"}
	default:
		keys = []string{"Enter takes it"}
	}
	if len(s.card.Questions) > 1 && s.at > 0 {
		keys = append(keys, "Left goes back")
	}
	switch {
	case s.late:
		return append(keys, "Ctrl+O leaves")
	case !s.card.isQuestion():
		return append(keys, "Esc Esc: no", "Ctrl+L later")
	case !s.keyed || !s.focused && s.count.mode != countFrozen: // which there is no way back from
		keys = append(keys, "Ctrl+T take time")
	}
	return append(keys, "Ctrl+O hand over", "Ctrl+L later")
}

// brief is the hint in one line: how to answer and how to leave.
func (s *cardState) brief(w int) string {
	switch {
	case s.sending:
		return "sending…"
	case s.late:
		return fitting(w, "Enter sends it late · Ctrl+O leaves", "Enter late · ^O leaves", "Enter, ^O leave")
	case !s.card.isQuestion():
		return fitting(w, "Enter takes it · Esc Esc: no", "Enter · Esc Esc: no", "Enter, 2×Esc no")
	case s.reviewing(), len(s.card.Questions[s.at].Options) == 0:
		return fitting(w, "Enter sends · Ctrl+L later", "Enter · ^L later", "Enter, ^L later")
	case s.card.Questions[s.at].MultiSelect:
		return fitting(w, "Space marks · Enter takes · Ctrl+L later", "Space, Enter · ^L later", "Space, Enter, ^L", "Space/Enter, ^L")
	}
	return fitting(w, "Enter takes it · Ctrl+L later", "Enter · ^L later", "Enter, ^L later")
}

// joined fills lines with the parts, none of them broken where that can be helped.
func joined(style string, parts []string, w int) []line {
	const dot = " · "
	var out []line
	for _, p := range parts {
		if n := len(out); n > 0 && width(out[n-1].text+dot+p) <= w {
			out[n-1].text += dot + p
			continue
		}
		out = append(out, styled(style, p, w)...)
	}
	return out
}

// fitting is the first of the texts that fits, or the beginning of the last.
func fitting(w int, texts ...string) string {
	for _, text := range texts {
		if width(text) <= w {
			return text
		}
	}
	return clip(texts[len(texts)-1], w)
}
