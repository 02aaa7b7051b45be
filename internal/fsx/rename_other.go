//go:build !linux

package fsx

func renameNew(oldName, newName string) error { return linkNew(oldName, newName) }
