package cli

import "github.com/jedib0t/go-pretty/v6/table"

// printTable writes rows in columns to stdout, the first as their heading.
// Untrusted text in them is made visible on a terminal.
func (a *App) printTable(rows [][]string) {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	for _, row := range rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = a.visible(cell)
		}
		t.AppendRow(cells)
	}
	a.Printf("%s\n", t.Render())
}
