package cli

import (
	"context"

	"github.com/drover-run/drover/internal/owner"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// engaged is a session that this process drives, and the socket over which other
// processes reach it meanwhile (D24).
type engaged struct {
	*engine.Harness
	server *owner.Server
}

// drivingBase is base for a command that drives: its sessions serve the owner
// socket.
func (f *factory) drivingBase(command string) (base, error) {
	b, err := f.base(command)
	if err != nil {
		return base{}, err
	}
	if b.sockets, err = owner.Folder(f.env); err != nil {
		return base{}, err
	}
	b.command = command
	b.repo, err = f.repoFor(command, func(path string, fence int64) string {
		socket, err := owner.SocketPath(b.sockets, path, fence)
		if err != nil {
			return "" // listen finds out again, where it can be reported
		}
		return socket
	})
	return b, err
}

// runningBase is drivingBase for a command that runs operations, and not only ends
// them: what they need is looked at first.
func (f *factory) runningBase(command string) (base, error) {
	b, err := f.drivingBase(command)
	if err != nil {
		return base{}, err
	}
	return b, b.runnable()
}

// engage serves an owned session to others while it is used here. Who was told
// over the socket that something is accepted is not left alone with it: the
// session is closed when all of it has settled (D25). A signal waits for nothing.
func (b *base) engage(ctx context.Context, ref store.Ref, s *store.Session, use func(*engaged) error) error {
	options, err := b.harnessOptions(ctx, s)
	if err != nil {
		return firstOf(err, s.Close())
	}
	return b.engageWith(ctx, ref, options, use)
}

func (b *base) engageWith(ctx context.Context, ref store.Ref, o engine.Options, use func(*engaged) error) error {
	return withOptions(ctx, o, func(h *engine.Harness) error {
		server, err := b.listen(ctx, ref, h)
		if err != nil {
			return err
		}
		err = use(&engaged{h, server})
		// It fails only when the session is being closed already.
		_ = server.Quiesce(ctx)
		return firstOf(err, server.Close())
	})
}

func (b *base) listen(ctx context.Context, ref store.Ref, h *engine.Harness) (*owner.Server, error) {
	lease, err := b.repo.Lease(ctx, ref)
	if err != nil {
		return nil, err
	}
	if lease == nil {
		return nil, &store.Lost{Path: ref.Path, Reason: "fenced"}
	}
	if lease.Socket == "" {
		if lease.Socket, err = owner.SocketPath(b.sockets, ref.Path, lease.Fence); err != nil {
			return nil, err
		}
	}
	return owner.Serve(ctx, owner.Options{
		Harness: h, Path: lease.Socket, OwnerID: lease.OwnerID, Fence: lease.Fence, SessionID: ref.ID, Command: b.command,
	})
}
