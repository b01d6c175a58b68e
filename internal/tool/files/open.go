package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"deepseek/internal/tool"
)

// openRegular opens a file for reading and refuses all that is none: a FIFO or
// a device could hold the call for ever, even between a look and the opening.
func (p place) openRegular() (*os.File, fs.FileInfo, error) {
	fi, err := os.Stat(p.real)
	if err != nil {
		return nil, nil, p.failed(err)
	}
	if !fi.Mode().IsRegular() {
		return nil, nil, p.notRegular(fi.Mode())
	}
	f, err := os.OpenFile(p.real, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, p.failed(err)
	}
	fi, err = f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = p.notRegular(fi.Mode())
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, p.failed(err)
	}
	return f, fi, nil
}

func (p place) notRegular(mode fs.FileMode) error {
	what := "a special file"
	switch {
	case mode.IsDir():
		return coded{CodeNotAFile, p.shown + " is a directory" + listing(p.real)}
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return coded{CodeNotAFile, p.shown + " is " + what + ", not a file"}
}

// listing names some entries of a folder.
func listing(dir string) string {
	const most = 20
	f, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // opened for reading
	entries, err := f.ReadDir(maxNames)
	if err != nil || len(entries) == 0 {
		return "; it is empty or cannot be listed"
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	names := make([]string, 0, most)
	for _, e := range entries[:min(most, len(entries))] {
		name := tool.Name(e.Name())
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	text := "; it holds " + strings.Join(names, ", ")
	if len(entries) > most {
		text += ", …"
	}
	return text
}

// silence is how long a file may have nothing to read and yet no end, before it is
// taken for one that never has: some files under /proc are regular and like that.
const silence = time.Second

var errEndless = errors.New("it waits for more to come and has no end; run a command with a timeout_ms on it instead")

// chunks reads f to its end and hands out its parts. The end of ctx also ends a
// read that blocks. A file that keeps one waiting is errEndless.
func chunks(ctx context.Context, f *os.File, fn func(part []byte) (more bool)) error {
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 64<<10)
	for {
		_ = f.SetReadDeadline(time.Now().Add(silence)) // ordinary files know none and need none
		if err := ctx.Err(); err != nil {              // after that, so that the end of ctx is not set back
			return err
		}
		n, err := f.Read(buf)
		if n > 0 && !fn(buf[:n]) {
			return nil
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded):
			return errEndless
		case err != nil:
			return err
		}
	}
}

// load reads a whole file and names its version.
func (p place) load(ctx context.Context) (content []byte, hash string, err error) {
	f, fi, err := p.openRegular()
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // opened for reading
	return p.loadFrom(ctx, f, fi.Size())
}

func (p place) loadFrom(ctx context.Context, f *os.File, size int64) ([]byte, string, error) {
	tooLarge := coded{CodeTooLarge, fmt.Sprintf("%s is larger than %d MB; change it with a command", p.shown, maxWhole>>20)}
	if size > maxWhole {
		return nil, "", tooLarge
	}
	content := bytes.NewBuffer(make([]byte, 0, size+1))
	err := chunks(ctx, f, func(part []byte) bool {
		content.Write(part)
		return content.Len() <= maxWhole
	})
	if err != nil {
		return nil, "", p.failed(err)
	}
	if content.Len() > maxWhole {
		return nil, "", tooLarge
	}
	return content.Bytes(), hashOf(content.Bytes()), nil
}

// sniffed is how much of a file decides whether it is text.
const sniffed = 8 << 10

// binary names the kind of a file that is no text, "" for text.
func binary(head []byte) string {
	head = head[:min(len(head), sniffed)]
	if bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{0xFE, 0xFF}) {
		return "UTF-16 text, not UTF-8"
	}
	hasNUL := bytes.IndexByte(head, 0) >= 0
	kind := http.DetectContentType(head)
	if !hasNUL && (strings.HasPrefix(kind, "text/") || validHead(head)) {
		return ""
	}
	if !hasNUL && kind == "application/octet-stream" {
		return ""
	}
	if strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		return "a binary file"
	}
	return "a binary file (" + kind + ")"
}

// validHead is utf8.Valid but for a rune that the cut of the head splits.
func validHead(head []byte) bool {
	for cut := 0; cut < utf8.UTFMax && cut <= len(head); cut++ {
		if utf8.Valid(head[:len(head)-cut]) {
			return true
		}
	}
	return false
}
