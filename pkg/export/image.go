package export

import (
	"bytes"
	"encoding/base64"
)

// imageType is the media type of an image that a page may show, told by its
// content; "" for anything else, and for data that is not plainly base64.
func imageType(data string) string {
	for i := range len(data) {
		switch c := data[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/':
		case c == '=' && i >= len(data)-2:
		default:
			return ""
		}
	}
	head, err := base64.StdEncoding.DecodeString(data[:min(len(data), 32)])
	switch {
	case err != nil || len(data)%4 != 0:
		return ""
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
