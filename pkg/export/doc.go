// Package export writes a session for others: as a file that the coding agent of
// the legacy format opens, as a Markdown or HTML transcript, or entry by entry.
//
// Open takes one coherent moment of a session and indexes its tree, so that
// memory follows the number of entries and not their size; the payloads are read
// while they are written. What goes out is the path of one lane, or the whole
// tree with that path marked. Redaction happens here, once for every form.
//
// Import law: export may import store, message, internal/rawjson,
// internal/redact and internal/visible, never the engine, an encoding or a
// command package.
package export
