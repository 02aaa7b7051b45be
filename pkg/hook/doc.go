// Package hook runs programs at the eleven interception points of a run (spec
// §5.6): the event is JSON on their standard input, the answer JSON on their
// standard output, and nothing at all changes nothing.
//
// Programs run under the tools' supervisor, so that none outlives the process
// (D45), and without the variables that hold keys (D44).
//
// Import law: engine, effect, op, message, tool and the standard library.
package hook
