// Package acp serves sessions to an editor over the Agent Client Protocol. It is
// a client of a session like any other: it queues messages, tells the editor
// what the log says, and asks the person there. It holds no rule of the engine
// and no deadline but the countdown of a question whose claim it holds.
//
// The SDK's connection decodes and sends; four things around it are ours. The
// gate lets one message in at a time, so that requests take effect in the order
// of their arrival, and takes their parameters round the SDK, whose reader ends
// at lines that are shorter than ours. What takes long does no more than its
// first step then, and goes on while others are served. Parameters are compared
// with the SDK's types, which take more than there is. The wire gives what goes
// out a bounded queue, and knows what is owed. And a request for a person's
// answer is never forgotten when its time is up: an answer that still arrives is
// sent as a late one.
package acp
