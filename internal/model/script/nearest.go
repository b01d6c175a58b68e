package script

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nearest names the known key that was probably meant, or all of them.
func nearest(key string, members map[string]func(*yaml.Node)) string {
	best, least := "", 3 // of letters that may differ
	var known []string
	for k := range members {
		known = append(known, k)
	}
	slices.Sort(known)
	for _, k := range known {
		if d := distance(strings.ToLower(key), k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; it knows " + strings.Join(known, ", ")
}

// distance counts the letters to add, drop or change between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
