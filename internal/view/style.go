package view

import (
	"strings"

	"github.com/fatih/color"
)

// style colours text, or does not: its switch is its own, not the process's. It
// never changes after newStyle.
type style struct {
	dim, bold, good, bad, warn *color.Color
	dimOn, dimOff              string // what dim puts around a text
}

func newStyle(on bool) style {
	make := func(attr color.Attribute) *color.Color {
		c := color.New(attr)
		if on {
			c.EnableColor()
		} else {
			c.DisableColor()
		}
		return c
	}
	dim := make(color.Faint)
	before, behind, _ := strings.Cut(dim.Sprint("|"), "|")
	return style{
		dimOn: before, dimOff: behind,
		dim:  dim,
		bold: make(color.Bold),
		good: make(color.FgGreen),
		bad:  make(color.FgRed),
		warn: make(color.FgYellow),
	}
}
