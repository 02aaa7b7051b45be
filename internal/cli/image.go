package cli

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"
	"os"

	// image.DecodeConfig knows what is imported.
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"

	"github.com/drover-run/drover/pkg/message"
)

// maxImage is the largest image that providers take, in bytes.
const maxImage = 5_000_000

// readImages reads the images that the flags name.
func (i *input) readImages(p *printer) ([]message.Block, error) {
	var blocks []message.Block
	for _, path := range i.images {
		data, err := readImage(path, p.in)
		if err != nil {
			return nil, err
		}
		mime, err := imageType(data)
		if err != nil {
			return nil, usagef("--image %s: %v", escapeLine(path), err)
		}
		blocks = append(blocks, message.Block{
			Type: message.BlockImage, Data: base64.StdEncoding.EncodeToString(data), MimeType: mime,
		})
	}
	return blocks, nil
}

func readImage(path string, stdin io.Reader) ([]byte, error) {
	from := stdin
	if path != "-" {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing := notFoundf("file_not_found", "--image: there is no file %s", escapeLine(path))
			missing.cause = err
			return nil, missing
		}
		if err != nil {
			return nil, fmt.Errorf("open image: %w", err)
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, usagef("--image %s: it is a folder", escapeLine(path))
		}
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, maxImage+1))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if len(data) > maxImage {
		return nil, usagef("--image %s: the image has more than %d bytes", escapeLine(path), maxImage)
	}
	return data, nil
}

// imageType is the media type of an image that models can look at, told by its
// content: a name proves nothing.
func imageType(data []byte) (string, error) {
	if len(data) >= 16 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return "image/webp", nil
	}
	config, form, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return "", errors.New("it is no PNG, JPEG, GIF or WebP image")
	}
	if config.Width == 0 || config.Height == 0 {
		return "", errors.New("the image is empty")
	}
	return "image/" + form, nil
}
