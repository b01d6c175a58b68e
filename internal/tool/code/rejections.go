package code

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libquickjs"
	"modernc.org/quickjs"
)

// rejections are the promises that were rejected while nobody listened, as a
// forgotten await leaves them. The binding does not pass on what the engine
// tells of them, so the engine itself is asked. All of it happens on the
// goroutine of the engine.
type rejections struct {
	made  int
	texts map[libquickjs.TJSValue][]rejection // the last is of the promise that is there now
}

type rejection struct {
	number int
	text   string
}

// tracked finds the rejections of an engine by the number it was given. The
// engine keeps only a number: it must hold no pointer to Go's memory.
var tracked struct {
	sync.Mutex
	last uintptr
	byID map[uintptr]*rejections
}

// track begins to note rejections, until the returned function is called. Where
// a later version of the binding hides what this needs, none are noted.
func track(vm *quickjs.VM) (*rejections, func()) {
	r := &rejections{texts: map[libquickjs.TJSValue][]rejection{}}
	rt := reflect.ValueOf(vm).Elem().FieldByName("runtime")
	if rt.Kind() != reflect.Pointer || rt.IsNil() {
		return r, func() {}
	}
	ptr := rt.Elem().FieldByName("cRuntime")
	if ptr.Kind() != reflect.Uintptr {
		return r, func() {}
	}
	tracked.Lock()
	defer tracked.Unlock()
	tracked.last++
	id := tracked.last
	if tracked.byID == nil {
		tracked.byID = map[uintptr]*rejections{}
	}
	tracked.byID[id] = r
	libquickjs.XJS_SetHostPromiseRejectionTracker(nil, uintptr(ptr.Uint()), entryOf(rejected), id)
	return r, func() {
		tracked.Lock()
		defer tracked.Unlock()
		delete(tracked.byID, id)
	}
}

// entryOf is a function as the engine's tables hold it: a Go function that the
// translated C code calls through its code pointer.
func entryOf(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

// rejected is called by the engine when a promise is rejected without a
// listener, and again when one comes later.
func rejected(tls *libc.TLS, ctx uintptr, promise, reason libquickjs.TJSValue, handled int32, id uintptr) {
	tracked.Lock()
	r := tracked.byID[id]
	tracked.Unlock()
	switch {
	case r == nil:
	case handled != 0:
		if n := len(r.texts[promise]); n > 0 {
			r.texts[promise] = r.texts[promise][:n-1]
		}
	default:
		r.made++
		text := ""
		if r.made <= maxRejections {
			text = textOf(tls, ctx, reason)
			if stack := stackOf(tls, ctx, reason); stack != "" {
				text += "\n" + stack
			}
		}
		r.texts[promise] = append(r.texts[promise], rejection{r.made, text})
	}
}

// Of so many the text is kept, so long.
const (
	maxRejections     = 1000
	maxRejectionBytes = 1000
)

// textOf is a value as a string.
func textOf(tls *libc.TLS, ctx uintptr, v libquickjs.TJSValue) string {
	p := libquickjs.XJS_ToCStringLen2(tls, ctx, 0, v, 0)
	if p == 0 {
		libquickjs.XFreeValue(tls, ctx, libquickjs.XJS_GetException(tls, ctx))
		return "a value that cannot be shown"
	}
	defer libquickjs.XJS_FreeCString(tls, ctx, p)
	s := libc.GoString(p)
	return strings.ToValidUTF8(s[:min(len(s), maxRejectionBytes)], "")
}

// stackOf is where an error was made; empty where that is not known.
func stackOf(tls *libc.TLS, ctx uintptr, v libquickjs.TJSValue) string {
	if libquickjs.XJS_IsError(tls, ctx, v) == 0 {
		return ""
	}
	name, err := libc.CString("stack")
	if err != nil {
		return ""
	}
	defer libc.Xfree(tls, name)
	stack := libquickjs.XJS_GetPropertyStr(tls, ctx, v, name)
	defer libquickjs.XFreeValue(tls, ctx, stack)
	if libquickjs.XJS_HasException(tls, ctx) != 0 {
		libquickjs.XFreeValue(tls, ctx, libquickjs.XJS_GetException(tls, ctx))
		return ""
	}
	if text := textOf(tls, ctx, stack); strings.Contains(text, frame) {
		return text
	}
	return ""
}

// list is what is left, in order.
func (r *rejections) list() []string {
	all := slices.Concat(slices.Collect(maps.Values(r.texts))...)
	slices.SortFunc(all, func(a, b rejection) int { return a.number - b.number })
	out := make([]string, len(all))
	for i, x := range all {
		out[i] = x.text
	}
	return out
}
