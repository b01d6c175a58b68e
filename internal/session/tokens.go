package session

import "unicode/utf8"

// Tokens estimates how many tokens a text is. No tokenizer is asked: those of
// the servers differ, and theirs is the count that bills. The estimate errs
// upwards, by up to the half, and for Chinese, JSON, numbers and encoded bytes
// too: a history that is thought shorter than it is would be refused.
func Tokens(s string) int {
	sum := 0                     // in hundredths
	last, run := uint8(space), 0 // the class of the byte before, and how many of it stand in a row
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(s[i:])
			sum += wide[n]
			last, run = mark, 0
			i += n
			continue
		}
		class := classes[c]
		switch class {
		case space: // a word takes one in; of a longer run, a token holds several
			sum += 6
		case lower, upper:
			sum += 20
			switch {
			case class == last, class == lower && last == upper && run == 1:
			case last == space || last == newline:
				sum += 40
			case last == mark:
				sum += 30
			default: // one word within another
				sum += 95
			}
		case digit: // servers cut numbers in threes, or every digit alone
			sum += 48
			if last != digit && last != mark {
				sum += 100
			}
		case newline:
			if last != newline {
				sum += 100
			}
		default:
			sum += 85
			if run > 2 && s[i-1] == c { // a ruler: ----, ====
				sum -= 65
			}
		}
		if class == last {
			run++
		} else {
			last, run = class, 1
		}
		i++
	}
	return (sum + 99) / 100
}

// Classes of ASCII.
const (
	mark = iota
	space
	newline
	lower
	upper
	digit
)

var classes = func() (c [utf8.RuneSelf]uint8) {
	for i := range c {
		switch b := byte(i); {
		case b == ' ' || b == '\t':
			c[i] = space
		case b == '\n' || b == '\r':
			c[i] = newline
		case b >= 'a' && b <= 'z':
			c[i] = lower
		case b >= 'A' && b <= 'Z':
			c[i] = upper
		case b >= '0' && b <= '9':
			c[i] = digit
		}
	}
	return c
}()

// wide is what a rune of so many bytes costs: Latin letters with accents, Greek
// and Cyrillic; Chinese, Japanese, Korean and the scripts of India; emoji. An
// invalid byte is sent as a rune of three.
var wide = [utf8.UTFMax + 1]int{1: 120, 2: 70, 3: 120, 4: 300}
