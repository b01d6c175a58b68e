package remote

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

const long = 8 << 20

func longPrompt() string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"S","contentBlocks":[{"type":"text","text":"%s"}]}}`, strings.Repeat("x", long))
}

func TestALongLineIsReadWithFewCopies(t *testing.T) {
	lim := stdioLimits
	lim.line = 2 * long
	l := newLineReader(strings.NewReader(""), lim, false)
	text := longPrompt()
	var got inLine
	n := allocated(func() {
		var err error
		if got, err = l.next(bufio.NewReader(io.MultiReader(strings.NewReader(text), strings.NewReader("\n")))); err != nil {
			t.Error(err)
		}
	})
	if string(got.text) != text || got.tooLong {
		t.Errorf("a line of %d bytes came as %d, too long: %v", len(text), len(got.text), got.tooLong)
	}
	if n > 4*long {
		t.Errorf("%d bytes were allocated for a line of %d", n, len(text))
	}
}

func TestALongRequestIsCheckedWithoutCopies(t *testing.T) {
	text := []byte(longPrompt())
	var params []byte
	n := allocated(func() {
		m, refused := checkLine(inLine{text: text}, 2*long)
		if refused != nil {
			t.Errorf("refused: %v", refused.err)
			return
		}
		var short []byte
		if short, params = withoutParams(m); string(short) != `{"jsonrpc":"2.0","method":"session/prompt","id":7}` {
			t.Errorf("without its parameters: %.200s", short)
		}
	})
	var p MessageParams
	n += allocated(func() {
		if err := decodeParams(params, &p); err != nil {
			t.Error(err)
		}
	})
	if n > 3*long { // the text itself, by way of a block that decodes itself
		t.Errorf("%d bytes were allocated for a request of %d", n, len(text))
	}
}
