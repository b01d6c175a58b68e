package remote

import "time"

// limits bound what one connection may cost.
type limits struct {
	line    int           // bytes of a line that comes in
	ahead   int           // bytes of lines that may wait for the request in hand
	queue   int           // bytes that may wait for a client to read before those that can wait do
	stall   time.Duration // of a full queue, until the client is dropped
	silence time.Duration // of a client, until its connection is closed; 0 = for ever
	flush   time.Duration // for what is queued when a connection ends
	page    int           // bytes of a page of the log
}

// socketLimits are those of a control socket.
var socketLimits = limits{
	line: 64 << 20, ahead: 1 << 20, queue: 16 << 20, page: 8 << 20,
	stall: 15 * time.Second, silence: 15 * time.Second, flush: 2 * time.Second,
}

// stdioLimits are those of standard streams. A client there is not bound to
// ping: its end is the end of its process, which closes the streams.
var stdioLimits = limits{
	line: 64 << 20, ahead: 1 << 20, queue: 16 << 20, page: 8 << 20,
	stall: 15 * time.Second, flush: 5 * time.Second,
}

// pingEvery is how often a client pings: often enough for the silence above.
const pingEvery = 5 * time.Second
