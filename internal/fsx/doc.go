// Package fsx holds the file-system work that the storage encodings share: a
// seam through which tests make it fail, whole-file replacement that survives a
// crash at any point, an OS lock on its own file, and the identity of processes
// (decisions D13, D16, D21, D22).
//
// It imports the standard library, gofrs/flock and golang.org/x/sys only.
package fsx
