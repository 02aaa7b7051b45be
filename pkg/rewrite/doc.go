// Package rewrite removes what a session's history must not hold any more (spec
// §2.9): whole entries, or single texts wherever content can live.
//
// It works in three steps. A Plan is made from one coherent snapshot and says
// what is kept, dropped, redacted and led to another entry; it decides everything
// and changes nothing. Execute hands the planned content to the session's
// exchange, which writes it beside the old store. Before the new store takes the
// old one's place, it is verified and searched for every text that had to go, in
// every spelling that JSON has; afterwards both are done again where it lies
// (D51, D53).
package rewrite
