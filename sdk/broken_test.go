package deepseek_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	deepseek "deepseek/sdk"
)

// broken is a server that does not keep the protocol. Its arguments are its answers
// to initialize and to a prompt, and what it says behind them; then it does what
// $END says and, if it goes on, neither reads nor ends by itself.
const broken = `
echo "last words" >&2
read -r l; printf '%s\n' "$1"
read -r l; shift; printf '%s\n' "$@"
eval "$END"
exec sleep 1000`

// TestServersThatBreakTheProtocol has the cases of the other packages too: a run
// without a deadline ends with the server's error, and so does what comes later.
func TestServersThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/broken.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name       string
		Initialize string
		Prompt     string
		Behind     []string
		End        string
		Malformed  string
		Error      string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			if tt.Initialize == "" {
				tt.Initialize = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`
			}
			if tt.Prompt == "" {
				tt.Prompt = `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","messageId":"m"}}`
			}
			o := deepseek.Options{
				Command: append([]string{"sh", "-c", broken, "sh", tt.Initialize, tt.Prompt}, tt.Behind...), Env: []string{"END=" + tt.End},
			}
			check := func(err error) {
				t.Helper()
				var died *deepseek.ServerError
				if !errors.As(err, &died) || !strings.Contains(died.Reason, tt.Error) || died.Stderr != "last words" {
					t.Errorf("got %v, want %s", err, tt.Error)
				}
			}
			ctx := testContext(t)
			c, err := deepseek.Start(ctx, o)
			if err != nil {
				check(err)
				return
			}
			defer func() { _ = c.Close() }()
			told := c.Events(ctx, "")
			_, err = c.Run(ctx, "go")
			if tt.Malformed == "" {
				check(err)
			} else if !errors.Is(err, deepseek.ErrMalformedEvent) || !strings.Contains(err.Error(), tt.Malformed) {
				t.Errorf("run: %v", err)
			}
			_, err = c.Sessions(ctx)
			check(err)
			for _, err = range told {
				if err != nil {
					break
				}
			}
			check(err)
		})
	}
}
