package deepseek

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// What the strictest servers take of a past call's name. One that they refuse would
// come back with every request from then on and end the session for good, so it is
// never sent. What is sent instead depends on nothing but the name itself: it is the
// same in every request, and after a resume. Ids go as the log has them: they are a
// server's own, or short.
const (
	maxName     = 64 // bytes
	hashed      = 16 // hex digits that keep apart what begins alike
	unnamedCall = "unnamed"
)

// letters puts a _ for every rune but ASCII letters, digits, _ and -.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// sentName is the name of a past call in the letters that servers accept, and
// of the length.
func sentName(name string) string {
	if name == "" {
		return unnamedCall
	}
	if len(name) <= maxName {
		return letters(name)
	}
	return shortened(letters(name[:maxName]), name, maxName)
}

// shortened is the beginning of head, with what tells whole from others; in all
// at most limit bytes.
func shortened(head, whole string, limit int) string {
	sum := sha256.Sum256([]byte(whole))
	return head[:min(len(head), limit-hashed-1)] + "_" + hex.EncodeToString(sum[:hashed/2])
}
