// Package effect is what touches the world on behalf of an operation: models,
// the gate that orders an effect's start against an abort, and the barrier that
// parks a manual drive (spec §4.2, §5.7).
//
// It knows nothing of durable state, lanes, retries or storage. Import law:
// message and the standard library only.
package effect
