package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// input is where a command's message comes from: words, stdin, a whole message
// as JSON, images.
type input struct {
	words   []string
	message string
	images  []string // files
}

// content is what was read of an input: a text with images, or whole messages.
type content struct {
	text     string
	images   []message.Block
	messages []message.Message
}

func (i *input) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&i.message, "message", "", "send a whole message, or an array of them, as `JSON` (- for stdin) instead of text")
	flags.StringArrayVar(&i.images, "image", nil, "send this image `FILE` too (- for stdin); may be repeated")
}

// take sets the words and refuses what does not go together.
func (i *input) take(cmd *cobra.Command, words []string) error {
	i.words = words
	whole := cmd.Flags().Changed("message")
	switch {
	case whole && len(words) > 0:
		return usagef("--message and TEXT exclude each other")
	case whole && len(i.images) > 0:
		return usagef("--message and --image exclude each other: a message holds its images")
	}
	readers := 0
	for _, source := range append(slices.Clone(i.images), i.message, strings.Join(words, " ")) {
		if source == "-" {
			readers++
		}
	}
	if readers > 1 {
		return usagef("only one of them can be read from stdin")
	}
	return nil
}

// read reads the input. Without words, stdin is the text, unless an image is.
func (i *input) read(p *printer) (c content, err error) {
	if i.message != "" {
		c.messages, err = i.messages(p)
		return c, err
	}
	if c.images, err = i.readImages(p); err != nil {
		return c, err
	}
	switch {
	case len(i.words) > 0 && (len(i.words) > 1 || i.words[0] != "-"):
		c.text = strings.Join(i.words, " ")
		return c, checkUTF8("the text", []byte(c.text))
	case len(i.words) == 0 && slices.Contains(i.images, "-"):
		return c, nil
	case p.inTTY && len(i.images) > 0:
		return c, nil
	case p.inTTY:
		return c, usagef("what shall be sent? Give TEXT, or pipe it in")
	}
	text, err := readStdin(p)
	c.text = string(text)
	return c, err
}

// one is the content for a request that takes a single message.
func (c content) one() (q engine.Queued, err error) {
	q.Text, q.Images = c.text, c.images
	switch len(c.messages) {
	case 0:
	case 1:
		q.Message = c.messages[0]
	default:
		return q, usagef("one message at a time: --message holds %d", len(c.messages))
	}
	return q, nil
}

// readStdin reads text up to the size that a message may have.
func readStdin(p *printer) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(p.in, store.MaxPayload+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read stdin: %w", err)
	case len(text) > store.MaxPayload:
		return nil, &engine.InvalidMessage{Reason: fmt.Sprintf("stdin holds more than %d bytes", int64(store.MaxPayload))}
	}
	return text, checkUTF8("stdin", text)
}

func checkUTF8(what string, text []byte) error {
	if offset := rawjson.ValidUTF8(text); offset >= 0 {
		return usagef("%s is not UTF-8: byte %d is 0x%02x", what, offset, text[offset])
	}
	return nil
}

// readJSON reads a JSON argument, - for stdin, and refuses what is none.
func readJSON(p *printer, what, arg string) ([]byte, error) {
	raw, err := []byte(arg), error(nil)
	if arg == "-" {
		if raw, err = readStdin(p); err != nil {
			return nil, err
		}
	}
	if err := checkUTF8(what, raw); err != nil {
		return nil, err
	}
	if syntax := rawjson.Valid(raw); syntax != nil {
		return nil, usagef("%s is no JSON: byte %d: %s", what, syntax.Offset, syntax.Msg)
	}
	return raw, nil
}

// messages reads --message: one message or an array of them.
func (i *input) messages(p *printer) ([]message.Message, error) {
	raw, err := readJSON(p, "--message", i.message)
	if err != nil {
		return nil, err
	}
	switch rawjson.KindOf(raw) {
	case rawjson.Object:
		return []message.Message{raw}, nil
	case rawjson.Array:
	default:
		return nil, usagef("--message must be a message or an array of messages")
	}
	var all []message.Message
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}
