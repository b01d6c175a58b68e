package deepseek

import (
	"strings"
	"testing"
)

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
