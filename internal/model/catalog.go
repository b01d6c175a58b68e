package model

import (
	"strings"

	"deepseek/internal/session"
)

// Names that mean more than a name on a server.
const (
	Default      = "deepseek-v4-flash"
	Demo         = "demo"
	ScriptPrefix = "script:"
)

// DefaultContextWindow is assumed of a model that is not in the table, in tokens.
const DefaultContextWindow = 128_000

// PricesOf dates the table. Prices change, and DeepSeek bills half of them
// outside its peak hours: a cost made of them is an estimate, at the upper end.
const PricesOf = "2026-10"

// PriceNote goes with every price that is shown.
const PriceNote = "built-in table of " + PricesOf + ", at the peak rate; check your bill"

// Price is what a million tokens cost, in US dollars.
type Price struct {
	Input  float64 `json:"input"`  // not in the cache
	Cached float64 `json:"cached"` // in the cache
	Output float64 `json:"output"` // reasoning included
}

// Entry is a model of the table.
type Entry struct {
	Name    string
	Window  int    // context window in tokens
	Price   *Price // nil where nothing is billed
	AsOf    string // date of the price, "" where there is none
	Comment string
}

var (
	flashPrice = Price{Input: 0.30, Cached: 0.006, Output: 1.20}
	proPrice   = Price{Input: 1.32, Cached: 0.044, Output: 3.96}
)

// Known returns the table, a copy of its own for each caller.
func Known() []Entry {
	flash, pro, chat, reasoner := flashPrice, proPrice, flashPrice, flashPrice
	return []Entry{
		{Name: Default, Window: 1_000_000, Price: &flash, AsOf: PricesOf, Comment: "fast and cheap, thinks unless --effort off"},
		{Name: "deepseek-v4-pro", Window: 1_000_000, Price: &pro, AsOf: PricesOf, Comment: "for harder work"},
		{Name: "deepseek-chat", Window: 1_000_000, Price: &chat, AsOf: PricesOf, Comment: "old name of the flash model without thinking; may be refused"},
		{Name: "deepseek-reasoner", Window: 1_000_000, Price: &reasoner, AsOf: PricesOf, Comment: "old name of the flash model with thinking; may be refused"},
		{Name: Demo, Window: DefaultContextWindow, Comment: "built-in, offline, needs no key"},
		{Name: ScriptPrefix + "FILE", Window: DefaultContextWindow, Comment: "plays the answers in FILE, offline"},
	}
}

func lookup(name string) (Entry, bool) {
	for _, e := range Known() {
		if e.Name == name || strings.HasPrefix(name, ScriptPrefix) && strings.HasPrefix(e.Name, ScriptPrefix) {
			return e, true
		}
	}
	return Entry{}, false
}

// ContextWindow returns the window of a known model, in tokens.
func ContextWindow(name string) (int, bool) {
	e, ok := lookup(name)
	return e.Window, ok
}

// Cost is what a usage costs in US dollars, by the user's own prices first. It
// reports false where no price is known.
func Cost(name string, u session.Usage, overrides map[string]Price) (float64, bool) {
	p, ok := overrides[name]
	if !ok {
		e, known := lookup(name)
		if !known || e.Price == nil {
			return 0, false
		}
		p = *e.Price
	}
	const million = 1e6
	return (float64(u.InputTokens)*p.Input + float64(u.CacheReadTokens)*p.Cached + float64(u.OutputTokens)*p.Output) / million, true
}
