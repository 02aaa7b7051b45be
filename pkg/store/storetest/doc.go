// Package storetest holds the rules that every storage encoding obeys, as one
// suite that each encoding's own tests run (spec §9.3), and decorators that
// watch, stop and break a Backend: Recorder, Gating and Faulty.
//
// Only tests import it.
package storetest
