package files

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A change keeps what stands beside the content: the user's attributes and access lists.
func TestEditKeepsExtendedAttributes(t *testing.T) {
	b := newBox(t)
	b.put("f", "one\n")
	if err := unix.Setxattr(b.path("f"), "user.origin", []byte("somewhere"), 0); err != nil {
		t.Skip("no attributes here:", err)
	}
	if err := unix.Setxattr(b.path("f"), "user.empty", nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(b.path("f"), 0o640); err != nil {
		t.Fatal(err)
	}
	// user::rw- user:1:r-- group::r-- mask::r-- other::---
	acl := []byte("\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\x01\x00\x00\x00" +
		"\x04\x00\x04\x00\xff\xff\xff\xff" + "\x10\x00\x04\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")
	lists := unix.Setxattr(b.path("f"), "system.posix_acl_access", acl, 0) == nil
	want(t, b.read("f"), "")
	want(t, b.call("edit", editArgs{"f", "one", "two", false}), "", "Edited f")
	value := make([]byte, 100)
	if n, err := unix.Getxattr(b.path("f"), "user.origin", value); err != nil || string(value[:n]) != "somewhere" {
		t.Errorf("user.origin: %q, %v", value[:max(n, 0)], err)
	}
	if n, err := unix.Getxattr(b.path("f"), "user.empty", value); err != nil || n != 0 {
		t.Errorf("user.empty: %d, %v", n, err)
	}
	if n, err := unix.Getxattr(b.path("f"), "system.posix_acl_access", value); lists && (err != nil || string(value[:n]) != string(acl)) {
		t.Errorf("access list: %x, %v", value[:max(n, 0)], err)
	}
	if fi, err := os.Stat(b.path("f")); err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	b.clean()
}
