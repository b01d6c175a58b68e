// Package mcp offers the tools of MCP servers (Model Context Protocol): programs
// that are started and spoken to over their input and output, or addresses that
// are spoken to over HTTP.
//
// A server is not trusted with anything but its own calls. Its names, texts and
// schemas are bounded and brought into one fixed form, since they are part of
// every request to the model. What it sends is bounded. What it does instead of
// answering (dying, hanging, printing anything) makes that one call fail.
package mcp
