// Package archtest fails when a package imports what the architecture does not
// allow it to. It holds tests only.
package archtest
