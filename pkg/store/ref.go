package store

// Ref names one session and where its store lies.
type Ref struct {
	ID      string
	Path    string
	Backend string // the driver's name
	// Legacy marks a coding-agent file that is read as it is (D58).
	Legacy bool
}
