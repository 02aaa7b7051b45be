// Package store remembers: it keeps one session's entry tree, values, lists and
// usage ledger, changes them only in atomic transactions, and finds sessions in
// a repository (spec §1, §2).
//
// Everything durable is one of three things. Entries are the conversation tree:
// write-once, append-only. Values and lists are current mutable state at typed
// addresses: a value is replaced or deleted, a list grows or is deleted whole.
// Usage rows are the cost ledger: append-only. A transaction writes any of them
// all-or-none and gives every write its own rising sequence number.
//
// One Backend serves one session in raw JSON; its encodings live in the packages
// below this one. Session adds lane lines, typed addresses and the one-commit
// mutator; Repo adds discovery, creation and ownership.
//
// Import law: store may import message, internal/rawjson, internal/fsx and
// pkg/telemetry, never an encoding of its own, the engine, or a command package.
package store
