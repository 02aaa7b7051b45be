// Package enginetest is what the engine is tested with: a session over any
// storage encoding with a fixed clock and deterministic ids (D4), a model whose
// answers are code, traces of commits, events and requests in the notation of
// the specification, and the crash matrix (spec §9.3).
package enginetest
