package deepseek

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"deepseek/internal/model"
)

// proxyAnswer is told what a proxy says when it is asked for a way to the
// server. Of a refusal the standard library would hand on no more than the words
// of the status. The address is named without its user and password.
func proxyAnswer(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	e := &model.Error{Code: model.CodeTransport, Status: res.StatusCode, Message: fmt.Sprintf("the proxy %s let nothing through to the server: %s", proxyName(proxy), res.Status)}
	switch {
	case res.StatusCode == http.StatusProxyAuthRequired:
		return wantsLogin(proxyName(proxy), res)
	case res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusUnauthorized:
		e.Code = model.CodeProxy // which another attempt does not change
	}
	return e
}

func proxyName(proxy *url.URL) string { return proxy.Scheme + "://" + proxy.Host }

// wantsLogin is a proxy that wants another user and password than it got, if it
// got any.
func wantsLogin(name string, res *http.Response) *model.Error {
	return &model.Error{
		Code: model.CodeProxy, Status: res.StatusCode,
		Message: fmt.Sprintf("the proxy %s wants another user and password than its address has: %s. Set them there, as in http://USER:PASSWORD@HOST:PORT.", name, res.Status),
	}
}

// proxyOf names the proxy that a request went through, as far as that is known.
func (a *Adapter) proxyOf(r *http.Request) string {
	if t, ok := a.client.Transport.(*http.Transport); ok && t.Proxy != nil && r != nil {
		if u, err := t.Proxy(r); err == nil && u != nil {
			return proxyName(u)
		}
	}
	return "on the way to the server"
}

// CheckProxy says what is wrong with the variable that names the HTTP proxy on
// the way to the server, if one is. The standard library goes past a proxy whose
// address it cannot read, and whoever set one up means it to be used. The error
// never quotes the address: it may hold a password.
func CheckProxy(base string, getenv func(string) string) error {
	u, err := ParseBase(base)
	if err != nil || !proxied(u.Hostname(), getenv) {
		return nil // what is wrong with the base is told elsewhere
	}
	for _, name := range []string{strings.ToUpper(u.Scheme) + "_PROXY", u.Scheme + "_proxy"} {
		value := getenv(name)
		if value == "" {
			continue
		}
		if !proxyAddress(value) {
			return fmt.Errorf("%s: is no address of a proxy such as http://127.0.0.1:3128", name)
		}
		return nil // the first that is set counts
	}
	return nil
}

// proxyAddress tells whether the standard library can make something of it.
func proxyAddress(s string) bool {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	return err == nil && u.Hostname() != "" && slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme)
}

// proxied tells whether a proxy, if there is one, is asked for a host.
func proxied(host string, getenv func(string) string) bool {
	ip := net.ParseIP(host)
	if host == "localhost" || ip.IsLoopback() {
		return false
	}
	list := getenv("NO_PROXY")
	if list == "" {
		list = getenv("no_proxy")
	}
	for e := range strings.SplitSeq(list, ",") {
		e = strings.TrimSpace(e)
		if _, network, err := net.ParseCIDR(e); err == nil && ip != nil && network.Contains(ip) {
			return false
		}
		if name, _, err := net.SplitHostPort(e); err == nil {
			e = name
		}
		e = strings.TrimPrefix(strings.TrimPrefix(e, "*"), ".")
		if e == "" && strings.TrimSpace(list) == "*" || e != "" && (strings.EqualFold(host, e) || strings.HasSuffix(strings.ToLower(host), "."+strings.ToLower(e))) {
			return false
		}
	}
	return true
}
