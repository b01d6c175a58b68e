package question

import "slices"

// Watch calls tell for every wait that opens or ends from now on, in order, with
// no lock held. tell must not block, since others wait for it; it may attach.
// After stop, tell is not called any more, save that a call in hand may still run.
func (s *Service) Watch(tell func(Event)) (stop func()) {
	w := &watcher{tell: tell}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(slices.Clip(s.watchers), w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.stopped = true
		s.watchers = slices.DeleteFunc(slices.Clone(s.watchers), func(x *watcher) bool { return x == w })
	}
}

// deliver hands out the queued events. One goroutine does so at a time, which
// keeps them in order; the others leave theirs to it.
func (s *Service) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivering {
		return
	}
	s.delivering = true
	for len(s.events) > 0 {
		q := s.events[0]
		s.events = s.events[1:]
		for _, w := range s.watchers {
			if w.stopped {
				continue
			}
			s.mu.Unlock()
			w.tell(q.event)
			s.mu.Lock()
		}
		if q.delivered != nil {
			close(q.delivered)
		}
	}
	s.delivering = false
}

// Provide says that there is somebody to ask for the cards that offer takes.
// offer is called with no lock held, from any goroutine, and must not block.
// withdraw takes that back: waits without a bound that nobody else offers to
// answer, and nobody has claimed, end with NO_PROVIDER.
func (s *Service) Provide(offer func(Card) bool) (withdraw func()) {
	p := &provider{offer}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.providers = append(slices.Clip(s.providers), p)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.providers = slices.DeleteFunc(slices.Clone(s.providers), func(x *provider) bool { return x == p })
		for _, w := range s.waits {
			w.nudge()
		}
	}
}

func (s *Service) offered(c Card) bool {
	s.mu.Lock()
	providers := s.providers // never changed in place
	s.mu.Unlock()
	c.Remaining = -1 // asked only where there is no bound
	return slices.ContainsFunc(providers, func(p *provider) bool { return p.offer(c) })
}
