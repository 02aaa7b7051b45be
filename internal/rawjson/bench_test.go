package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// sessionLines is about 50 MB of lines shaped like a session's transactions:
// each an array of five writes around one message of a kilobyte of text. It is
// the same in every run.
var sessionLines = sync.OnceValue(func() []byte {
	const size = 50_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{
		"the", "session", "reads", "a", "file", "and", "writes", "its", "answer", "back,", "naïve", "会話", "🙂",
		"path/to/file.go", "error:", "\"quoted\"", "func main() {\n\tfmt.Println(x)\n}", "durable", "commit.", "lane",
	}
	var out, text []byte
	for seq := 1; len(out) < size; seq += 5 {
		text = text[:0]
		for n := 600 + rng.IntN(900); len(text) < n; {
			text = append(append(text, words[rng.IntN(len(words))]...), ' ')
		}
		id := fmt.Sprintf("0193e4c0-7b1a-7c3d-9e2f-%012x", rng.Uint64()&(1<<48-1))
		out = fmt.Appendf(out, `[{"kind":"entry.append","seq":%d,"id":"%s","parentId":"%s","at":%d,"payload":{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":`,
			seq, id, id, 1764428400000+seq*37)
		out = AppendQuote(out, string(text))
		out = fmt.Appendf(out, `},{"type":"toolCall","id":"call_%06d","name":"read","arguments":{"path":"src/%d.go","limit":200,"deep":true}}],"usage":{"input":%d,"output":%d,"cost":0.00%d},"stopReason":"toolUse"}}},`,
			seq, rng.IntN(1000), rng.IntN(100000), rng.IntN(4000), rng.IntN(1000))
		out = fmt.Appendf(out, `{"kind":"value.set","seq":%d,"ns":"op.state","key":"%s","payload":{"at":"assistant.effect_pending","attempt":1,"lane":"main","next":null,"calls":["call_%06d"]}},`,
			seq+1, id, seq)
		out = fmt.Appendf(out, `{"kind":"value.set","seq":%d,"ns":"lane.leaf","key":"main","payload":"%s"},`, seq+2, id)
		out = fmt.Appendf(out, `{"kind":"usage.append","seq":%d,"id":"%s","payload":{"input":%d,"output":%d,"cacheRead":0,"cost":{"total":0.0123}}},`,
			seq+3, id, rng.IntN(100000), rng.IntN(4000))
		out = fmt.Appendf(out, `{"kind":"list.delete","seq":%d,"ns":"inbox","key":"main","id":"%s"}]`+"\n", seq+4, id)
	}
	return out
})

// eachLine runs fn on every line of the session text once per iteration.
func eachLine(b *testing.B, fn func(line []byte)) {
	text := sessionLines()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for rest := text; len(rest) > 0; {
			n := bytes.IndexByte(rest, '\n')
			fn(rest[:n])
			rest = rest[n+1:]
		}
	}
}

func BenchmarkSkip(b *testing.B) {
	eachLine(b, func(line []byte) {
		if _, err := Skip(line, 0); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkSkipAgainstJSONText times Skip and the same structure scan by
// jsontext, as lax, in turns and reports the best pass of each: on a machine
// that is shared, only such a ratio means something.
func BenchmarkSkipAgainstJSONText(b *testing.B) {
	text := sessionLines()
	var own, other time.Duration
	for b.Loop() {
		start := time.Now()
		for rest := text; len(rest) > 0; {
			end, err := Skip(rest, 0)
			if err != nil {
				b.Fatal(err)
			}
			rest = rest[end+1:]
		}
		own = best(own, time.Since(start))

		start = time.Now()
		d := jsontext.NewDecoder(bytes.NewBuffer(text), lax...)
		for {
			if err := d.SkipValue(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		other = best(other, time.Since(start))
	}
	b.ReportMetric(float64(len(text))/1e6/own.Seconds(), "own-MB/s")
	b.ReportMetric(float64(len(text))/1e6/other.Seconds(), "jsontext-MB/s")
	b.ReportMetric(other.Seconds()/own.Seconds(), "times")
}

func best(old, d time.Duration) time.Duration {
	if old == 0 {
		return d
	}
	return min(old, d)
}

func BenchmarkValid(b *testing.B) {
	eachLine(b, func(line []byte) {
		if err := Valid(line); err != nil {
			b.Fatal(err)
		}
	})
}

func BenchmarkValidStd(b *testing.B) {
	eachLine(b, func(line []byte) {
		if !json.Valid(line) {
			b.Fatal("invalid")
		}
	})
}

func BenchmarkValidUTF8(b *testing.B) {
	eachLine(b, func(line []byte) {
		if ValidUTF8(line) >= 0 {
			b.Fatal("invalid")
		}
	})
}

func BenchmarkCompact(b *testing.B) {
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, sessionLines()[:bytes.IndexByte(sessionLines(), '\n')], "", "  "); err != nil {
		b.Fatal(err)
	}
	b.Run("none", func(b *testing.B) {
		var dst []byte
		eachLine(b, func(line []byte) {
			var err error
			if dst, err = Compact(dst[:0], line); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("indented", func(b *testing.B) {
		var dst []byte
		b.SetBytes(int64(spaced.Len()))
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if dst, err = Compact(dst[:0], spaced.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMembersFunc reads the members of each write of each line, as opening
// a session does.
func BenchmarkMembersFunc(b *testing.B) {
	var members int
	eachLine(b, func(line []byte) {
		err := ElementsFunc(line, func(start, end int) bool {
			return MembersFunc(line[start:end], func(m Member) bool {
				if KeyIs(m.Key, "payload") {
					members++
				}
				return true
			}) == nil
		})
		if err != nil {
			b.Fatal(err)
		}
	})
	if members == 0 {
		b.Fatal("no members")
	}
}

func BenchmarkGet(b *testing.B) {
	line := sessionLines()[1:]
	end, err := Skip(line, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(end))
	b.ReportAllocs()
	for b.Loop() {
		if n, ok := GetInt(line[:end], "seq"); !ok || n != 1 {
			b.Fatal(n, ok)
		}
	}
}

// texts are the decoded strings of the session text by how hard they are.
func texts(b *testing.B) map[string]string {
	var plain, mixed []byte
	for m := range 200 {
		plain = fmt.Appendf(plain, "word %d of a plain text that needs no escape at all. ", m)
		mixed = fmt.Appendf(mixed, "line %d: \"naïve\" 会話 🙂\n\tindented code();\n", m)
	}
	if !utf8.Valid(mixed) {
		b.Fatal("mixed is not UTF-8")
	}
	return map[string]string{"plain": string(plain), "mixed": string(mixed), "halves": "\xed\xa0\xbd" + string(mixed)}
}

func BenchmarkAppendQuote(b *testing.B) {
	for name, s := range texts(b) {
		b.Run(name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				dst = AppendQuote(dst[:0], s)
			}
		})
	}
}

func BenchmarkAppendUnquote(b *testing.B) {
	for name, s := range texts(b) {
		raw := Quote(s)
		b.Run(name, func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = AppendUnquote(dst[:0], raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
