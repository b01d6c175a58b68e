package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deepseek/internal/config"
	"deepseek/internal/model"
)

type modelsOptions struct {
	json     bool
	online   bool
	settings map[string]string
}

func newModels(a *App, run func(context.Context, *App, modelsOptions) error) *cobra.Command {
	var o modelsOptions
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the known models with window and price",
		Long:  "List the known models with context window and price in US dollars for a million tokens.\nOther names work too, as far as the server knows them; * marks the one in use.",
		Example: `  deepseek models
  deepseek models --json`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.settings = given(cmd.Flags())
			return run(cmd.Context(), a, o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array of objects")
	cmd.Flags().BoolVar(&o.online, "online", false, "ask the server which models it has")
	addSettings(cmd, "model", "base_url")
	return cmd
}

// modelRow is one line of the list. What is not known is absent.
type modelRow struct {
	Name      string       `json:"name"`
	InUse     bool         `json:"inUse"`
	Window    int          `json:"contextWindow,omitempty"` // tokens
	Price     *model.Price `json:"price,omitempty"`         // US dollars for a million tokens
	PriceDate string       `json:"priceDate,omitempty"`
	Note      string       `json:"note,omitempty"`
	Online    *bool        `json:"online,omitempty"` // the server has it; absent where it was not asked
}

func runModels(ctx context.Context, a *App, o modelsOptions) error {
	c, err := a.Load(o.settings, false)
	if err != nil {
		return err
	}
	rows := modelRows(c)
	if o.online {
		key, err := a.findKey(ctx, c)
		if err != nil {
			return err
		}
		ids, err := askModels(ctx, http.DefaultClient, c.BaseURL, key)
		if err != nil {
			return err
		}
		rows = markOnline(rows, ids)
	}
	if o.json {
		raw, err := json.MarshalIndent(rows, "", "  ")
		if err != nil {
			return err
		}
		a.Printf("%s\n", raw)
		return nil
	}
	a.printTable(modelTable(rows, o.online))
	a.Warnf("prices: US dollars for a million tokens; %s\n", model.PriceNote)
	return nil
}

// modelRows are the known models, with the one in use among them.
func modelRows(c *config.Config) []modelRow {
	var rows []modelRow
	found := false
	for _, e := range model.Known() {
		r := modelRow{Name: e.Name, Window: e.Window, Price: e.Price, PriceDate: e.AsOf, Note: e.Comment}
		r.InUse = e.Name == c.Model || e.Name == model.ScriptPrefix+"FILE" && strings.HasPrefix(c.Model, model.ScriptPrefix)
		found = found || r.InUse
		rows = append(rows, r)
	}
	if !found {
		window := c.ContextWindow
		if window == 0 {
			window = model.DefaultContextWindow
		}
		rows = append(rows, modelRow{Name: c.Model, InUse: true, Window: window, Note: "not in the table; passed on as it is"})
	}
	for i := range rows {
		if p, ok := c.Prices[rows[i].Name]; ok {
			rows[i].Price, rows[i].PriceDate = &p, "yours"
		}
	}
	return rows
}

func markOnline(rows []modelRow, ids []string) []modelRow {
	has := map[string]bool{}
	for _, id := range ids {
		has[id] = true
	}
	for i := range rows {
		online := has[rows[i].Name]
		rows[i].Online = &online
		delete(has, rows[i].Name)
	}
	for _, id := range ids { // in the server's order
		if has[id] {
			yes := true
			rows = append(rows, modelRow{Name: id, Online: &yes})
			delete(has, id)
		}
	}
	return rows
}

func modelTable(rows []modelRow, online bool) [][]string {
	out := [][]string{{"", "model", "window", "input", "cached", "output", "as of", "note"}}
	for _, r := range rows {
		mark, window := "", "?"
		if r.InUse {
			mark = "*"
		}
		if r.Window > 0 {
			window = fmt.Sprint(r.Window)
		}
		line := []string{mark, r.Name, window, "-", "-", "-", r.PriceDate, r.Note}
		if p := r.Price; p != nil {
			line[3], line[4], line[5] = fmt.Sprintf("$%g", p.Input), fmt.Sprintf("$%g", p.Cached), fmt.Sprintf("$%g", p.Output)
		}
		if online {
			line[7] = map[bool]string{true: "on the server", false: "not on the server"}[*r.Online]
		}
		out = append(out, line)
	}
	return out
}

// askModels asks an OpenAI-compatible server for its models. The key goes to
// that server alone: redirects are not followed.
func askModels(ctx context.Context, via *http.Client, base, key string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	client := *via
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, usagef("base_url: is no address\nset it with: deepseek config set base_url URL")
	}
	req.Header.Set("Authorization", "Bearer "+key)
	failed := func(code, format string, args ...any) error {
		return &Coded{Exit: ExitFailed, Code: code, Message: "cannot list the models of " + req.URL.Host + ": " + fmt.Sprintf(format, args...), Hint: "without --online the built-in table is shown"}
	}
	res, err := client.Do(req)
	if err != nil {
		var timeout interface{ Timeout() bool }
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, failed(model.CodeTimeout, "no answer within 20 s")
		}
		for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
			err = inner // the words of the innermost, without the address
		}
		return nil, failed(model.CodeTransport, "%v", err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	switch {
	case err != nil:
		return nil, failed(model.CodeTransport, "%v", err)
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return nil, failed(model.CodeAuth, "HTTP %d: the key was refused", res.StatusCode)
	case res.StatusCode != http.StatusOK:
		return nil, failed(model.CodeServer, "HTTP %d", res.StatusCode)
	}
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, failed(model.CodeMalformed, "the answer is no list of models")
	}
	var ids []string
	for _, m := range answer.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}
