package model

import (
	"strings"
	"testing"
)

func TestParseBase(t *testing.T) {
	for _, tt := range []struct{ base, says string }{
		{"https://api.deepseek.com", ""},
		{"http://127.0.0.1:8080/v1/", ""},
		{"http://127.0.0.1:8080/v1 ", "blanks"},
		{"http://[::1]:65535", ""},
		{"http://host:", ""},
		{"https://gateway/chat/v1", ""},
		{"localhost:80", "http:// or https://"},
		{"ftp://host", "http:// or https://"},
		{"http://", "http:// or https://"},
		{"http://:80", "http:// or https://"},
		{"http://a b", "http:// or https://"},
		{"http://127.0.0.1:99999", "port that is not from 1 to 65535"},
		{"http://127.0.0.1:0", "port that is not from 1 to 65535"},
		{"http://127.0.0.1:99999999999999999999", "port that is not from 1 to 65535"},
		{"http://me:secret@host", "leave them out"},
		{"http://secret@host", "leave them out"},
		{"http://me:secret@host:99999", "port"},
		{"http://host/?secret=1", "a query"},
		{"http://host/#secret", "a fragment"},
		{"http://host/v1/chat/completions", "/chat/completions, which is added"},
		{"http://host/chat/completions/", "/chat/completions, which is added"},
	} {
		_, err := ParseBase(tt.base)
		switch {
		case tt.says == "" && err != nil:
			t.Errorf("%q: %v", tt.base, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q: %v, want %s", tt.base, err, tt.says)
		}
	}
}
