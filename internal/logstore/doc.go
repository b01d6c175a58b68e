// Package logstore keeps sessions as bytes on disk: one append-only JSONL file
// each, with one writing owner at a time and any number of readers.
//
// It knows the envelope of a line (seq, type, time) and not what an event
// means. Its promises:
//
//   - What Log.Sync has acknowledged survives a crash of the process or of the
//     machine, a full disk and a failing one.
//   - A session appears whole (header and first batch) or not at all, and
//     never replaces another.
//   - Opening never changes a byte. Only a last line that was cut or does not
//     parse is set aside, by the first append; anything else that is wrong is
//     damage, reported with its line and byte, and the file stays as it is.
//   - Readers take no lock and need no owner.
//
// How each crash is survived is argued in docs/session-log.md, which the tests
// of this package follow step by step through a file system that can fail or
// crash at any call.
package logstore
