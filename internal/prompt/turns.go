package prompt

import (
	"slices"
	"strings"
	"sync"
)

// turns gives the terminal to one card at a time. The mutex guards all of it. The zero value
// is ready.
type turns struct {
	mu      sync.Mutex
	holder  *turn
	queue   []*turn
	notices []string // what others had to say while a card had the terminal
	news    chan struct{}
	arrived chan struct{}
}

// turn is one card's place.
type turn struct {
	ready   chan struct{} // closed when the terminal is this card's
	visible bool          // it has something to show; guarded by turns.mu
}

// signal is where the holder hears of a card that waits; at most one note lies in it.
func (t *turns) signal() chan struct{} {
	if t.arrived == nil {
		t.arrived = make(chan struct{}, 1)
	}
	return t.arrived
}

// join queues for the terminal.
func (t *turns) join(visible bool) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	me := &turn{ready: make(chan struct{}), visible: visible}
	t.queue = append(t.queue, me)
	t.pass()
	t.note(visible)
	return me
}

func (t *turns) note(visible bool) {
	if visible {
		select {
		case t.signal() <- struct{}{}:
		default:
		}
	}
}

// pass gives a free terminal to the first who has something to show, else to the first.
func (t *turns) pass() {
	if t.holder != nil || len(t.queue) == 0 {
		return
	}
	i := max(slices.IndexFunc(t.queue, func(w *turn) bool { return w.visible }), 0)
	t.holder = t.queue[i]
	t.queue = slices.Delete(t.queue, i, i+1)
	close(t.holder.ready)
}

// leave gives the turn back, or the place in the queue. write brings the notices out that
// gathered meanwhile; it is called only if the turn was held.
func (t *turns) leave(me *turn, write func(string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != me {
		t.queue = slices.DeleteFunc(t.queue, func(w *turn) bool { return w == me })
		return
	}
	if len(t.notices) > 0 {
		write(strings.Join(t.notices, ""))
		t.notices = nil
	}
	t.holder = nil
	t.pass()
}

// show says that a waiting card has something to show now.
func (t *turns) show(me *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !me.visible {
		me.visible = true
		t.note(true)
	}
}

// wanted says whether a card with something to show waits, and where to hear of the next one.
func (t *turns) wanted() (bool, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.queue, func(w *turn) bool { return w.visible }), t.signal()
}

// notice brings words out without a turn: at once if the terminal is free, else when its
// holder leaves.
func (t *turns) notice(text string, write func(string)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		write(text)
		return
	}
	t.put(text)
}

// tell leaves words to the card that has the terminal. False: none has it.
func (t *turns) tell(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		return false
	}
	t.put(text)
	return true
}

// put keeps words for the holder and lets it know. The caller holds mu.
func (t *turns) put(text string) {
	t.notices = append(t.notices, text)
	select {
	case t.hasNews() <- struct{}{}:
	default:
	}
}

func (t *turns) hasNews() chan struct{} {
	if t.news == nil {
		t.news = make(chan struct{}, 1)
	}
	return t.news
}

// heard is where the holder hears of words to bring out.
func (t *turns) heard() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasNews()
}

// take hands the words to the holder.
func (t *turns) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.Join(t.notices, "")
	t.notices = nil
	return text
}
