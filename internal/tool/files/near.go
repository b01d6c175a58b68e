package files

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deepseek/internal/tool"
)

// missing words that nothing is at a place, with the names that are like it.
func (p place) missing() error {
	dir, name := filepath.Split(p.abs)
	names, err := someNames(dir)
	if err != nil {
		for up := filepath.Dir(filepath.Clean(dir)); ; up = filepath.Dir(up) {
			if fi, err := os.Stat(up); err == nil && fi.IsDir() {
				return coded{CodeNotFound, p.shown + " does not exist, nor does its folder; the nearest folder that does is " + up}
			}
			if up == filepath.Dir(up) {
				return coded{CodeNotFound, p.shown + " does not exist"}
			}
		}
	}
	text := p.shown + " does not exist"
	if like := nearest(name, names, 3); len(like) > 0 {
		for i := range like {
			like[i] = tool.Name(like[i])
		}
		text += "; similar names there: " + strings.Join(like, ", ")
	}
	return coded{CodeNotFound, text}
}

// maxNames is as much of a folder as is looked at for a message.
const maxNames = 10_000

// someNames lists a folder, as far as it is worth comparing names.
func someNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	names, err := f.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) {
		err = nil // an empty folder
	}
	return names, err
}

// nearest picks the names that may have been meant, best first.
func nearest(name string, names []string, most int) []string {
	type scored struct {
		name  string
		score int
	}
	var found []scored
	want := strings.ToLower(name)
	stem := strings.TrimSuffix(want, filepath.Ext(want))
	for _, n := range names {
		low := strings.ToLower(n)
		score := distance(want, low)
		switch {
		case low == want:
			score = 0
		case stem != "" && strings.TrimSuffix(low, filepath.Ext(low)) == stem:
			score = 1
		case score > 2 && score > len([]rune(want))/3:
			continue
		case score >= max(len(want), len(low)):
			continue // nothing in common
		}
		found = append(found, scored{n, score})
	}
	slices.SortStableFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
	})
	out := make([]string, 0, most)
	for _, f := range found[:min(most, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// distance counts the letters to change, add or drop.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			change := diagonal
			if x[i] != y[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}
