package deepseek

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"deepseek/internal/model"
)

func TestAProxyThatRefusesIsNamedWithoutItsPassword(t *testing.T) {
	for _, base := range []string{"https://model.invalid", "http://model.invalid"} {
		for status, want := range map[int]struct {
			code  string
			again bool
		}{
			407: {model.CodeProxy, false},
			403: {model.CodeProxy, false},
			502: {model.CodeTransport, true},
		} {
			if status != 407 && strings.HasPrefix(base, "http:") {
				continue // an answer like the server's own
			}
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			u, err := url.Parse(proxy.URL)
			if err != nil {
				t.Fatal(err)
			}
			u.User = url.UserPassword("me", "secret")
			transport := newTransport().(*http.Transport)
			transport.Proxy = http.ProxyURL(u)
			a := New(Config{BaseURL: base, Key: testKey, Client: &http.Client{Transport: transport}})
			_, err = a.Generate(context.Background(), model.Request{}, nil)
			a.Close()
			proxy.Close()
			var failed *model.Error
			if !errors.As(err, &failed) || failed.Code != want.code || failed.Status != status || model.Retryable(failed) != want.again {
				t.Errorf("%s, %d: %v, want %s", base, status, err, want.code)
				continue
			}
			if m := failed.Message; !strings.Contains(m, "the proxy "+proxy.URL+" ") || strings.Contains(m, "secret") || strings.Contains(m, "me@") || !strings.Contains(m, http.StatusText(status)) {
				t.Errorf("%s, %d: %s", base, status, m)
			}
		}
	}
}

func TestAProxyThatCannotBeReadIsNoticed(t *testing.T) {
	for _, tt := range []struct {
		base, env, says string // env is NAME=value, several apart by blanks
	}{
		{"http://host", "", ""},
		{"http://host", "HTTP_PROXY=::bad", "HTTP_PROXY: is no address"},
		{"http://host", "http_proxy=http://me:secret@host:99x", "http_proxy: is no address"},
		{"https://host/v1", "HTTPS_PROXY=ftp://proxy", "HTTPS_PROXY: is no address"},
		{"https://host", "HTTP_PROXY=::bad", ""},
		{"http://host", "HTTP_PROXY=http://proxy:3128", ""},
		{"http://host", "HTTP_PROXY=proxy:3128 http_proxy=::bad", ""},
		{"http://host", "HTTP_PROXY=127.0.0.1:3128", ""},
		{"http://host", "HTTP_PROXY=socks5://proxy", ""},
		{"http://127.0.0.1:80", "HTTP_PROXY=::bad", ""},
		{"http://localhost:80", "HTTP_PROXY=::bad", ""},
		{"http://[::1]:80", "HTTP_PROXY=::bad", ""},
		{"http://a.host", "HTTP_PROXY=::bad NO_PROXY=x,.host", ""},
		{"http://a.host", "HTTP_PROXY=::bad no_proxy=host:80", ""},
		{"http://ahost", "HTTP_PROXY=::bad NO_PROXY=host", "HTTP_PROXY"},
		{"http://10.1.2.3", "HTTP_PROXY=::bad NO_PROXY=10.0.0.0/8", ""},
		{"http://11.1.2.3", "HTTP_PROXY=::bad NO_PROXY=10.0.0.0/8", "HTTP_PROXY"},
		{"http://host", "HTTP_PROXY=::bad NO_PROXY=*", ""},
		{"nonsense", "HTTP_PROXY=::bad", ""},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(tt.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		err := CheckProxy(tt.base, func(name string) string { return env[name] })
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%s, %s: %v", tt.base, tt.env, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%s, %s: %v, want %s", tt.base, tt.env, err, tt.says)
		}
	}
}
