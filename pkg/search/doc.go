// Package search is a full-text index over the sessions of a repository (spec
// §2.8 "Search"): one SQLite file that can be made again at any time, and that no
// session knows of. Sync brings it up to date from what Repo.List and Repo.View
// tell; Sessions and Entries ask it.
//
// What is indexed is the text of message entries. A session's rows hang on a cursor
// of (session, storage generation), moved in the transaction that adds them, so that
// a crash, or another process that does the same, leaves every entry in it once.
//
// It imports store and message.
package search
