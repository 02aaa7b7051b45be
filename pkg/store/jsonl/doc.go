// Package jsonl is the encoding that anything can read: one file of JSON lines,
// format 4 (spec §1.7, D14). The first line is the header; every further line is
// one commit, an object for a single write and an array for several. The file
// is the recipe that a memory.State is replayed from; payloads stay in it and
// are read when they are asked for.
//
// A commit is one write at the end of the file, so a crash can only leave a torn
// last line. Readers ignore it, and the next owner cuts it before it appends
// (D15). Anything else that is wrong with a line is corruption, reported with
// the line's number and the byte offset of the fault.
//
// The owner holds an OS lock on the file beside it, PATH.lock, whose content
// tells who that is (D16). Readers take no lock and change nothing (D9, D10).
//
// Import law: jsonl may import store, store/memory, v3import, internal/rawjson
// and internal/fsx.
package jsonl
