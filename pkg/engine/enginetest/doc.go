// Package enginetest is what the engine is tested with: a session over any
// storage encoding with a fixed clock and deterministic ids (D4), models whose
// answers are code and which refuse what no provider would take, tools that count
// their executions in a file, traces of commits, events and requests in the
// notation of the specification, and the crash matrix: Cases are its histories, and
// a new phase of an operation belongs there (spec §9.3).
package enginetest
