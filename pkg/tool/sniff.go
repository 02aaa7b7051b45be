package tool

import (
	"bytes"
	"fmt"
	"strings"
)

const utf8BOM = "\xef\xbb\xbf"

// imageType returns the media type of an image that models can look at, by its
// first bytes.
func imageType(head []byte) string {
	h := string(head[:min(len(head), 12)])
	switch {
	case strings.HasPrefix(h, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case strings.HasPrefix(h, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(h, "GIF87a"), strings.HasPrefix(h, "GIF89a"):
		return "image/gif"
	case len(h) == 12 && h[:4] == "RIFF" && h[8:] == "WEBP":
		return "image/webp"
	}
	return ""
}

// signatures are the first bytes of common files that are not text, or only look
// like it.
var signatures = [...]struct{ start, what string }{
	{"%PDF-", "a PDF document"},
	{"\x7fELF", "an ELF program"},
	{"MZ\x90", "a Windows program"},
	{"\xcf\xfa\xed\xfe", "a Mach-O program"},
	{"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"},
	{"\x00asm", "a WebAssembly module"},
	{"PK\x03\x04", "a ZIP archive (or a document or package made of one)"},
	{"\x1f\x8b", "gzip data"},
	{"BZh", "bzip2 data"},
	{"\xfd7zXZ\x00", "xz data"},
	{"\x28\xb5\x2f\xfd", "Zstandard data"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{"SQLite format 3\x00", "an SQLite database"},
	{"BM", "a BMP image"},
	{"II*\x00", "a TIFF image"},
	{"MM\x00*", "a TIFF image"},
	{"OggS", "Ogg media"},
	{"ID3", "MP3 audio"},
	{"fLaC", "FLAC audio"},
	{"wOFF", "a font"},
	{"wOF2", "a font"},
	{"\xff\xfe", "UTF-16 text"},
	{"\xfe\xff", "UTF-16 text"},
}

// binaryType says what a file looks like that is not text, "" of text. Bytes that
// are not UTF-8 do not make a file binary: old encodings of text have them.
func binaryType(head []byte) string {
	odd := bytes.IndexByte(head, 0) >= 0
	for _, s := range signatures {
		if !strings.HasPrefix(string(head[:min(len(head), 16)]), s.start) {
			continue
		}
		if odd || s.what == "UTF-16 text" || s.start == "%PDF-" || !printable(s.start) {
			return s.what
		}
	}
	switch {
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return "MP4 media"
	case len(head) >= 262 && string(head[257:262]) == "ustar":
		return "a tar archive"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && odd:
		return fmt.Sprintf("RIFF media (%q)", head[8:12])
	case odd:
		return "binary data"
	}
	return ""
}

// printable tells whether a text file may well start like that.
func printable(start string) bool {
	for i := range len(start) {
		if start[i] < ' ' || start[i] > '~' {
			return false
		}
	}
	return true
}
