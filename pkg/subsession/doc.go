// Package subsession holds what sessions know of the sessions they spawned: the
// refs of a parent, the spawn metadata of a child, the deletion of a session with
// all of its local descendants, and the tombstones that deletions leave.
package subsession
