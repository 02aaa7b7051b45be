// Package sqlite keeps one session in one SQLite database in WAL mode
// (spec §1.7).
//
// One process owns a session through the fenced row in writer_lease (decisions
// D18, D19, D22); every commit checks the fence in the statement that reads the
// next sequence number, so an owner that was replaced can write nothing more.
// The owner works on one pinned connection with kept statements; scans and
// snapshots use a second, read-only one. Readers of other processes take no
// lease and never change the database file (D9, D10).
//
// Nothing in this package opens the database file other than through SQLite
// while a connection may be open: closing any descriptor of the file would drop
// the locks of the whole process.
//
// Import law: sqlite may import store, message, internal/rawjson and
// internal/fsx.
package sqlite
