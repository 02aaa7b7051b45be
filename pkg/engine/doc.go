// Package engine drives: it accepts operations on lanes, runs them in passes,
// commits every transition through one door and recovers what a dead process
// left behind (spec §4, §5).
//
// Decisions live in op, contact with the world in effect, memory in store. Here
// is what joins them: a Harness over one open session, a Lane per cursor, a
// drive pass per piece of work. A process may die between any two commits; the
// next drive reads the state that was committed last and goes on from there.
//
// Import law: op, effect, store and message; never an encoding, a command
// package or os.
package engine
