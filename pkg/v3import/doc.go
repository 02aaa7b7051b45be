// Package v3import reads session files of the coding agent, versions 1 to 3, as
// a store snapshot (spec Appendix B).
//
// A file is read twice. The first pass indexes it: framing, ids, parents, kinds,
// times and the place of every payload, so that memory follows the number of
// records and not their size. The second pass, Snapshot, reads payload bytes by
// their place and yields format-4 records, parents before children. The source
// is never written.
//
// What is kept, and what is not:
//
//   - Messages, compactions, branch summaries and custom entries stay entries
//     under new ids, with the bytes of their payloads and unknown fields.
//   - A custom_message becomes a message of role custom. Version 1 and 2 call
//     that role hookMessage; it is renamed.
//   - A type this package does not know becomes a custom entry pi.v3.TYPE whose
//     data is the whole record; a context_edit becomes pi.context_edit with its
//     target's new id.
//   - Labels and names become values; model, thinking and tool changes, usage and
//     leaf records leave the tree. Children of a record that leaves are lifted to
//     its nearest kept ancestor.
//   - A compaction's kept range is copied into retainedTail along its own branch,
//     context edits inside the range applied, as the agent itself would show it.
//   - Usage of answers, tool results, compactions, branch summaries and usage
//     records is summed, left to right in file order, into one adjustment row.
//     Costs are added as float64 in that order.
//
// Everything that is repaired or left out is a Warning; what cannot be trusted
// is a *Failure naming line and byte offset.
//
// Import law: v3import may import store, message, internal/rawjson and
// internal/fsx, never the engine, an encoding or a command package.
package v3import
