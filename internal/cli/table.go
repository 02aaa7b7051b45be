package cli

import (
	"bytes"
	"io"
	"slices"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// table is text in columns. Cells hold one line each.
type table struct {
	header []string
	rows   [][]string
	// whole are the headers of columns that are never cut: half a figure is a wrong
	// one, and half an id names nothing.
	whole []string
}

const (
	columnGap    = 2
	narrowColumn = 8 // no column is cut below this
)

// render writes the table, cut to fit width columns; 0 is no limit.
func (t *table) render(w io.Writer, width int) error {
	widths := t.fit(width)
	var drawn bytes.Buffer
	out := tablewriter.NewTable(&drawn,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{
				Separators: tw.SeparatorsNone,
				Lines:      tw.LinesNone,
			},
		})),
		tablewriter.WithPadding(tw.Padding{Right: "  ", Overwrite: true}),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithHeaderAutoFormat(tw.On),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off),
	)
	out.Header(t.cut(t.header, widths))
	for _, row := range t.rows {
		if err := out.Append(t.cut(row, widths)); err != nil {
			return err
		}
	}
	if err := out.Render(); err != nil {
		return err
	}
	for line := range bytes.Lines(drawn.Bytes()) {
		if _, err := w.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) cut(row []string, widths []int) []string {
	cells := make([]string, len(row))
	for i, cell := range row {
		cells[i] = shorten(cell, widths[i])
	}
	return cells
}

// fit gives every column what it needs, and takes from the widest ones what the
// terminal does not have.
func (t *table) fit(width int) []int {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], twwidth.Width(cell))
		}
	}
	if width <= 0 {
		return widths
	}
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for total > width {
		i := t.widest(widths)
		if i < 0 {
			break
		}
		widths[i]--
		total--
	}
	return widths
}

// widest is the first of the widest columns that can be cut, -1 for none.
func (t *table) widest(widths []int) int {
	found := -1
	for i, w := range widths {
		if w > narrowColumn && (found < 0 || w > widths[found]) && !slices.Contains(t.whole, t.header[i]) {
			found = i
		}
	}
	return found
}
