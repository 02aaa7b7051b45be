// Package repair mends sessions: what lies around their committed content in
// place, and damaged content by salvage, which copies what is readable into a new
// session and leaves the damaged file as it is.
//
// It may import store and message. Whoever calls it gives the checks that other
// packages know, such as that of operations.
package repair
