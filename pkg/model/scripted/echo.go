package scripted

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-run/drover/pkg/engine/effect"
	"github.com/drover-run/drover/pkg/message"
)

// echo answers a request with the text of its last user message, and says how
// many images came with it.
func echo(_ context.Context, req effect.Request) (response, error) {
	r := response{chunk: defaultChunk}
	for _, m := range slices.Backward(req.Messages) {
		if m.Role() == message.RoleUser {
			r.text = strings.Join(echoParts(m), "\n")
			break
		}
	}
	return r, nil
}

func echoParts(m message.Message) []string {
	blocks, err := m.Blocks()
	if err != nil {
		return nil
	}
	var parts []string
	images := 0
	for _, b := range blocks {
		switch {
		case b.Type == message.BlockImage:
			images++
		case b.Type == message.BlockText && b.Text != "":
			parts = append(parts, b.Text)
		}
	}
	switch images {
	case 0:
	case 1:
		parts = append(parts, "[1 image]")
	default:
		parts = append(parts, fmt.Sprintf("[%d images]", images))
	}
	return parts
}
