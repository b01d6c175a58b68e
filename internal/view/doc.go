// Package view shows sessions to people: the screen of a running one, and
// transcripts as text, JSON and HTML. It is handed what it shows and where to
// write; it decides nothing and reads no files.
package view
