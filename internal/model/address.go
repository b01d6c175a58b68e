package model

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// ParseAddress reads the address of a server: http or https, a host, and a port
// that there can be. It belongs to no setting; ParseBase is stricter. Its errors
// never quote the address: it may hold a password.
func ParseAddress(s string) (*url.URL, error) {
	if strings.TrimSpace(s) != s {
		return nil, errors.New("has blanks around it")
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("is no address that begins with http:// or https://")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, errors.New("has a port that is not from 1 to 65535")
		}
	}
	return u, nil
}

// completions is what the wire adds to a base URL.
const completions = "/chat/completions"

// ParseBase reads a base URL. One that holds more than an address is refused
// with what to leave out: a password would be shown and sent to nobody, and a
// path given twice is found by no server. Its errors never quote the URL.
func ParseBase(s string) (*url.URL, error) {
	u, err := ParseAddress(s)
	switch {
	case err != nil:
		return nil, err
	case u.User != nil:
		return nil, errors.New("holds a user name or a password: leave them out, the server is sent the key alone")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("has a query or a fragment")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), completions):
		return nil, errors.New("ends in " + completions + ", which is added to it: leave that out")
	}
	return u, nil
}
