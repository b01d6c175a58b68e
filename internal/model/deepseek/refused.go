package deepseek

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"deepseek/internal/model"
)

// What is read of the body of a refused request. The status has been said; a
// server that does not come to the end of its words costs no more than this.
const (
	maxErrorBody  = 64 << 10 // bytes
	errorBodyTime = 5 * time.Second
)

// refused words a response that is no stream, by as much of its body as came.
// cancel ends the attempt.
func (a *Adapter) refused(ctx context.Context, cancel context.CancelCauseFunc, res *http.Response) error {
	t := time.AfterFunc(errorBodyTime, func() { cancel(nil) }) // which ends the read
	defer t.Stop()
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // what came before an error is used
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if bytes.HasPrefix(text, gzipMagic) {
		if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
			if plain, _ := io.ReadAll(io.LimitReader(z, maxErrorBody)); len(plain) > 0 { // as far as it goes
				text = plain
			}
		}
	}
	text = text[:len(text)-a.cutKey(text)]
	return a.httpError(res, text)
}

// cutKey is how many bytes at the end of a text, which may have been cut
// anywhere, are the beginning of the key: a cut key is still a key.
func (a *Adapter) cutKey(text []byte) int {
	for n := min(len(a.cfg.Key)-1, len(text)); n >= 4; n-- {
		if bytes.HasSuffix(text, []byte(a.cfg.Key[:n])) {
			return n
		}
	}
	return 0
}

var gzipMagic = []byte{0x1f, 0x8b}

// unpack is the body of a stream, which some servers pack though they were asked
// not to.
func unpack(res *http.Response) (io.Reader, error) {
	switch how := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))); how {
	case "", "identity":
		return res.Body, nil
	case "gzip", "x-gzip":
		return &unpacked{from: res.Body}, nil
	}
	return nil, &model.Error{Code: model.CodeMalformed, Message: "the server packed its answer in a way that was not asked for and that cannot be read here. Check the base URL, or what stands between here and the server."}
}

// unpacked reads what gzip packed. It begins to read with the first Read, so
// that the clocks see it. It is for one goroutine.
type unpacked struct {
	from io.Reader
	zip  *gzip.Reader
}

func (u *unpacked) Read(p []byte) (int, error) {
	if u.zip == nil {
		z, err := gzip.NewReader(u.from)
		if err != nil {
			return 0, err
		}
		u.zip = z
	}
	return u.zip.Read(p)
}
