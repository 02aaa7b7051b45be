package owner

import (
	"fmt"
	"net"
	"syscall"
)

// peerUID is the user that runs the process at the other end: who connected, or
// who listens.
func peerUID(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask who the peer is: %w", err)
	}
	var cred *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return 0, fmt.Errorf("ask who the peer is: %w", err)
	}
	return int(cred.Uid), nil
}
