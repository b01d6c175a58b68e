package config

import "strings"

// Nearest returns the known word that the given one is most likely meant to
// be, or "" if none is near. Case, - and _ make no difference.
func Nearest(word string, known []string) string {
	best, bestDistance := "", 1<<30
	w := plain(word)
	if w == "" {
		return ""
	}
	for _, k := range known {
		p := plain(k)
		d := distance(w, p)
		if d > limit(w, p) && len(w) >= 3 && strings.HasPrefix(p, w) {
			d = limit(w, p) // a word cut short
		}
		if d <= limit(w, p) && d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func plain(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s))
}

func limit(a, b string) int { return max(1, min(3, (max(len(a), len(b))+1)/3)) }

// distance counts insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 1 << 20
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var twoBefore []int
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		twoBefore, before = before, row
		row = make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoBefore[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
