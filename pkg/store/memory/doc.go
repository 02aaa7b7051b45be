// Package memory is the encoding that lives in RAM (spec §1.7). Its State, the
// live content of one session with every query over it, is also what a JSONL
// file replays into: there the payloads stay in the file and State keeps only
// where they lie.
//
// Import law: memory may import store, message and the standard library.
package memory
