package logstore

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"
)

const extension = ".jsonl"

// Everything of a session lies in one folder and begins with its id:
//
//	<id>.jsonl        the log
//	<id>.jsonl.torn   what repair cut off, appended to
//	<id>.owner        who owns it; counts only while the lock is held
//	.<id>.owner-new   the same, half written
//	<id>.spill/       results too big for the log
//	<id>.drafts/      answers in the making, each as long as its question takes one
//	.<id>-xxxxx.new   a log that is being created, locked by its creator
//	.<id>.removed     a log that is being removed, locked by the remover

// TornPath is where the tail goes that repair cuts off the log at path.
func TornPath(path string) string { return path + ".torn" }

// OwnerPath is where the owner of the log at path says who it is.
func OwnerPath(path string) string { return beside(path, ownerSuffix) }

// replacingPath is where what is to replace the file at path is written first.
func replacingPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+replacingSuffix)
}

// SpillDir is the folder for what is too big for the log at path.
func SpillDir(path string) string { return beside(path, ".spill") }

// DraftsDir is the folder for drafts of answers in the session at path.
func DraftsDir(path string) string { return beside(path, ".drafts") }

func beside(path, suffix string) string { return strings.TrimSuffix(path, extension) + suffix }

// IDOf is the id that the name of a log carries.
func IDOf(path string) string { return strings.TrimSuffix(filepath.Base(path), extension) }

const (
	newSuffix       = ".new"
	removedSuffix   = ".removed"
	ownerSuffix     = ".owner"
	replacingSuffix = "-new"
)

func newPath(path, random string) string {
	return filepath.Join(filepath.Dir(path), "."+IDOf(path)+"-"+random+newSuffix)
}

func removedPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+IDOf(path)+removedSuffix)
}

// crockford is Crockford's base32 in lower case: no i, l, o, u.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

const randomChars = 5

func (s *Store) randomPart() string {
	var b [randomChars]byte
	s.random(b[:])
	for i := range b {
		b[i] = crockford[b[i]%32]
	}
	return string(b[:])
}

// NewID is a fresh id: the time in UTC and five random characters. That it is
// free is decided by Create.
func (s *Store) NewID(now time.Time) string {
	return now.UTC().Format("20060102-150405-") + s.randomPart()
}

// validID keeps ids to what is safe as a file name and in a shell.
func validID(id string) bool {
	if id == "" || len(id) > 64 || id[0] == '-' {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

const slugLength = 60 // of the readable part

// slug names the folder of a working directory: its readable end and, since
// /a-b and /a/b read alike, eight digits of a hash of the whole.
func slug(cwd string) string {
	cwd = filepath.Clean(cwd)
	sum := sha256.Sum256([]byte(cwd))
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '.', r == '_':
			return r
		}
		return '-'
	}, cwd)
	if len(name) > slugLength {
		name = name[len(name)-slugLength:]
	}
	name = strings.Trim(name, "-.")
	if name == "" {
		name = "root"
	}
	return name + "-" + hex.EncodeToString(sum[:4])
}
