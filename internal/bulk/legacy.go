package bulk

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-run/drover/internal/rawjson"
)

// legacyTurns are how many turns the session files of a folder have: most are
// short, and a few hold most of the bytes.
var legacyTurns = []int{
	1, 2, 1, 4, 130, 1, 3, 2, 1, 450, 2, 6, 1, 2, 240, 1, 0, 8, 2, 1, 32, 3, 1, 260, 2,
}

// FillLegacy writes n session files of the coding agent into a folder, about 150 KB
// each on average, as its users have them: turns of a question, an answer that
// thinks and calls a tool, and the tool's result. Every third one is of the version
// that has no ids. It returns their paths and how many bytes they have.
func FillLegacy(dir string, n int) (paths []string, size int64, err error) {
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("session-%05d.jsonl", i))
		f, err := os.Create(path)
		if err != nil {
			return nil, 0, err
		}
		l := legacy{w: bufio.NewWriter(f), linear: i%3 == 2, clock: time.UnixMilli(start).UTC()}
		l.session(i, legacyTurns[i%len(legacyTurns)])
		if err := errors.Join(l.w.Flush(), f.Close()); err != nil {
			return nil, 0, err
		}
		paths, size = append(paths, path), size+l.size
	}
	return paths, size, nil
}

// legacy writes one session file.
type legacy struct {
	w      *bufio.Writer
	linear bool // records have no ids
	clock  time.Time
	size   int64
	count  int    // records written
	parent string // id of the last one
}

func (l *legacy) session(i, turns int) {
	head := fmt.Sprintf(`{"type":"session","version":3,"id":"1fa031b8-444e-429d-bbaa-%012x"`, i)
	if l.linear {
		head = fmt.Sprintf(`{"type":"session","id":"1fa031b8-444e-429d-bbaa-%012x","provider":"anthropic","modelId":"some-model"`, i)
	}
	n, _ := fmt.Fprintf(l.w, "%s,\"timestamp\":%q,\"cwd\":\"/home/someone/work\"}\n", head, l.time())
	l.size += int64(n)
	l.record("model_change", `"provider":"anthropic","modelId":"some-model"`)
	l.record("thinking_level_change", `"thinkingLevel":"high"`)
	for t := range turns {
		l.turn(t)
		if t%200 == 150 {
			l.compaction()
		}
	}
}

func (l *legacy) time() string { return l.clock.Format("2006-01-02T15:04:05.000Z07:00") }

// record writes one line. A failed write shows when the file is flushed.
func (l *legacy) record(kind, members string) {
	l.clock = l.clock.Add(1300 * time.Millisecond)
	ids := ""
	if !l.linear {
		parent := "null"
		if l.parent != "" {
			parent = `"` + l.parent + `"`
		}
		l.parent = fmt.Sprintf("%08x", 0x1ff80617+2654435761*uint32(l.count))
		ids = fmt.Sprintf(`"id":"%s","parentId":%s,`, l.parent, parent)
	}
	n, _ := fmt.Fprintf(l.w, "{\"type\":%q,%s\"timestamp\":%q,%s}\n", kind, ids, l.time(), members)
	l.size += int64(n)
	l.count++
}

func (l *legacy) message(members string) {
	l.record("message", fmt.Sprintf(`"message":{%s,"timestamp":%d}`, members, l.clock.UnixMilli()))
}

func (l *legacy) turn(t int) {
	call := fmt.Sprintf("toolu_%024x", t)
	if t%8 == 0 {
		l.message(`"role":"user","content":[{"type":"text","text":` + prose(300) + `}]`)
	}
	content := `{"type":"text","text":` + prose(250) + `}`
	if t%5 == 0 {
		content = `{"type":"thinking","thinking":` + prose(700) + `,"thinkingSignature":"` + strings.Repeat("EvICCkYICxgCKkCo", 40) + `"},` + content
	}
	arguments := `{"command":"go test ./pkg/..."}`
	if t%7 == 3 {
		arguments = `{"path":"/home/someone/src/main.go","oldText":` + code(600) + `,"newText":` + code(900) + `}`
	}
	l.message(`"role":"assistant","content":[` + content + `,{"type":"toolCall","id":"` + call +
		`","name":"bash","arguments":` + arguments + `}],"api":"anthropic-messages","provider":"anthropic","model":"some-model",` +
		`"usage":{"input":10,"output":310,"cacheRead":15400,"cacheWrite":871,"totalTokens":16591,` +
		`"cost":{"input":0.00005,"output":0.00775,"cacheRead":0.0077,"cacheWrite":0.00544375,"total":0.02094375}},"stopReason":"toolUse"`)
	result := 900
	switch t % 10 {
	case 4:
		result = 12_000
	case 9:
		result = 5000
	}
	l.message(`"role":"toolResult","toolCallId":"` + call + `","toolName":"bash","content":[{"type":"text","text":` +
		code(result) + `}],"isError":false`)
}

// compaction keeps the last records.
func (l *legacy) compaction() {
	kept := fmt.Sprintf(`"firstKeptEntryId":"%08x"`, 0x1ff80617+2654435761*uint32(l.count-9))
	if l.linear {
		kept = fmt.Sprintf(`"firstKeptEntryIndex":%d`, l.count-8) // the header counts
	}
	l.record("compaction", `"summary":`+prose(4000)+`,`+kept+`,"tokensBefore":150000`)
}

// prose is a JSON string of about n bytes, as people and models write.
func prose(n int) string {
	const paragraph = "The drover walks behind the herd; \"steady\" he says, and it goes on over the hügel.\n\n- one step — then the next\n"
	return string(rawjson.Quote(strings.Repeat(paragraph, 1+n/len(paragraph))))
}

// code is a JSON string of about n bytes, as tools print.
func code(n int) string {
	const lines = "func (d *drover) walk(ctx context.Context) error {\n\tif err := d.herd.step(ctx); err != nil {\n\t\treturn fmt.Errorf(\"step %d: %w\", d.n, err)\n\t}\n\treturn nil\n}\n"
	return string(rawjson.Quote(strings.Repeat(lines, 1+n/len(lines))))
}
