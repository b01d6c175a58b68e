package deepseek

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"deepseek/internal/model"
)

// DefaultBaseURL is DeepSeek's own server.
const DefaultBaseURL = "https://api.deepseek.com"

// Provider is the name under which every server of this wire is logged.
const Provider = "deepseek"

// Clocks bound the silences of an attempt. A zero field takes its default.
type Clocks struct {
	Header       time.Duration // from the start of the attempt to the response headers
	Byte         time.Duration // between two reads of the body
	FirstContent time.Duration // from the headers to the first content
	Content      time.Duration // between two pieces of content
}

// DefaultClocks are the bounds that a product run uses.
var DefaultClocks = Clocks{
	Header: 120 * time.Second, Byte: 120 * time.Second, FirstContent: 600 * time.Second, Content: 300 * time.Second,
}

// Config is what an adapter is made of. All fields but Key are optional.
type Config struct {
	BaseURL   string // may end in "/" or "/v1"; empty is DefaultBaseURL
	Key       string // empty: no Authorization is sent, which local servers take
	Client    *http.Client
	Clocks    Clocks
	UserAgent string
	Now       func() time.Time // reads a Retry-After date
}

// Adapter is the wire. It does nothing before the first request and reuses
// connections between requests. It is safe for concurrent use: it never changes
// after New. Its owner calls Close when no request runs any more.
type Adapter struct {
	cfg    Config
	client *http.Client
}

var _ model.Model = (*Adapter)(nil)

// New makes an adapter. A base URL that cannot be used is reported by the
// first request; ParseBase tells earlier.
func New(cfg Config) *Adapter {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "deepseek"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&cfg.Clocks.Header, DefaultClocks.Header)
	def(&cfg.Clocks.Byte, DefaultClocks.Byte)
	def(&cfg.Clocks.FirstContent, DefaultClocks.FirstContent)
	def(&cfg.Clocks.Content, DefaultClocks.Content)

	var c http.Client
	if cfg.Client != nil {
		c = *cfg.Client
	}
	if c.Transport == nil {
		c.Transport = newTransport()
	}
	c.CheckRedirect = sameServer
	return &Adapter{cfg: cfg, client: &c}
}

func newTransport() http.RoundTripper {
	def, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // somebody replaced it on purpose
		return http.DefaultTransport
	}
	t := def.Clone()
	t.DisableCompression = true // a compressed stream arrives in lumps
	t.MaxIdleConnsPerHost = 10  // sub-agents run side by side
	t.ReadBufferSize = 32 << 10
	t.OnProxyConnectResponse = proxyAnswer
	return t
}

// sameServer follows a redirect that keeps method, scheme and host. Any other
// would hand the key and the conversation to a place nobody named, or drop the
// body; the redirect itself is then the answer, and becomes an error.
func sameServer(next *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) >= 5 || next.Method != first.Method || next.URL.Scheme != first.URL.Scheme || next.URL.Host != first.URL.Host {
		return http.ErrUseLastResponse
	}
	return nil
}

// ParseBase checks a base URL. The error says what is wrong with it, as
// model.ParseBase does.
func ParseBase(base string) (*url.URL, error) { return model.ParseBase(base) }

// Provider names the wire.
func (a *Adapter) Provider() string { return Provider }

// Close lets idle connections go.
func (a *Adapter) Close() { a.client.CloseIdleConnections() }

// Generate makes one attempt, as model.Model says. Of an answer that ctx cut
// short it returns text, reasoning and usage; calls of such an answer are left
// out, for nobody knows whether they were whole.
func (a *Adapter) Generate(ctx context.Context, req model.Request, sink func(model.Delta)) (model.Response, error) {
	if err := ctx.Err(); err != nil {
		return model.Response{}, err
	}
	attempt, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	httpReq, err := a.request(attempt, req)
	if err != nil {
		return model.Response{}, err
	}
	w := startWatch(a.cfg.Clocks, cancel)
	defer w.stop()

	res, err := a.client.Do(httpReq)
	if err != nil {
		return model.Response{}, a.failure(ctx, attempt, err, "no answer from the server")
	}
	// Closing an unread body closes its connection; a drained one is reused.
	defer func() { _ = res.Body.Close() }() // nothing is left to lose, the answer has been judged
	w.headers()

	if res.StatusCode != http.StatusOK {
		return model.Response{}, a.refused(ctx, cancel, res)
	}
	unpacked, err := unpack(res)
	if err != nil {
		return model.Response{}, err
	}
	body := newLineReader(unpacked, w)
	s := stream{adapter: a, sink: sink, watch: w, body: body}
	out, err := s.read(ctx, attempt)
	if err == nil {
		drain(res.Body, cancel)
	}
	return out, err
}

func (a *Adapter) request(ctx context.Context, req model.Request) (*http.Request, error) {
	base, err := ParseBase(a.cfg.BaseURL)
	if err != nil {
		return nil, &model.Error{Code: model.CodeInvalidRequest, Message: "the base URL " + err.Error()}
	}
	for _, c := range []byte(a.cfg.Key) {
		if c <= ' ' || c > '~' {
			return nil, &model.Error{Code: model.CodeAuth, Message: "the API key holds a space, a line end or another character that no key has; nothing was sent"}
		}
	}
	body, err := encode(req)
	if err != nil {
		return nil, &model.Error{Code: model.CodeInvalidRequest, Message: "the request cannot be encoded: " + err.Error()}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base.JoinPath("chat/completions").String(), bytes.NewReader(body))
	if err != nil {
		return nil, &model.Error{Code: model.CodeInvalidRequest, Message: a.clean(err.Error())}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Accept-Encoding", "identity") // without it a server may choose
	r.Header.Set("User-Agent", a.cfg.UserAgent)
	if a.cfg.Key != "" {
		r.Header.Set("Authorization", "Bearer "+a.cfg.Key)
	}
	return r, nil
}

// drainWait is how long the end of the body may take after [DONE].
const drainWait = 25 * time.Millisecond

// drain reads what follows [DONE], normally just the end of the body, so that
// the connection can be used again. A server that keeps it open loses it: the
// timer cancels the attempt, which ends the read.
func drain(body io.Reader, cancel context.CancelCauseFunc) {
	t := time.AfterFunc(drainWait, func() { cancel(nil) })
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, 4<<10) // what it says no longer matters
}
