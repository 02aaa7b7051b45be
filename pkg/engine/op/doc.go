// Package op decides: it is the operation state machine as total states and
// pure transitions (spec §3).
//
//	idle ──accept──▶ starting ──begin──▶ checkpoint
//	checkpoint ──need_assistant──▶ assistant.ready ──intend──▶ assistant.effect_pending
//	assistant.effect_pending ──settle──▶ checkpoint | assistant.retry_wait | failure_drain | …
//	assistant.retry_wait ──due──▶ assistant.ready
//	checkpoint ──may_finish──▶ terminal        failure_drain ──drained──▶ terminal
//
// A transition takes a Turn (everything it may look at, read on the lane line)
// and answers a Plan (writes, next state or result, leaf, events). Ids and time
// are arguments. terminal is no state: its transaction deletes what the
// operation owns.
//
// Import law: store and message; no context, clock, lock, file or randomness.
package op
