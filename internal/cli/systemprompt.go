package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/drover-run/drover/internal/resource"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/store"
)

// promptConfig is what the configuration says of the system prompt.
type promptConfig struct {
	text, file string
	context    []string // names of context files; nil is none
}

// defaultContextFile is the name that context_files: true means.
const defaultContextFile = "AGENTS.md"

func setContextFiles(c *config, s string) error {
	switch s {
	case "", "false":
		return nil
	case "true":
		c.prompt.context = []string{defaultContextFile}
		return nil
	}
	if isSwitch(s) {
		return wantError("true, false, or a list of names of files")
	}
	names := splitList(s)
	for _, name := range names {
		if name != filepath.Base(name) || name == "." || name == ".." || strings.Contains(name, "\x00") {
			return wantError("true, false or names of files, without folders")
		}
	}
	c.prompt.context = names
	return nil
}

// isSwitch reports whether a text is another word of YAML for true or false, or for
// nothing: whoever writes it means no file of that name.
func isSwitch(s string) bool {
	return slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "~"}, strings.ToLower(s))
}

// rank lets the environment's way to give the text win over the file's.
func (p *promptConfig) rank(from sources) {
	text, file := from.env(envName("system_prompt")) != "", from.env(envName("system_prompt_file")) != ""
	switch {
	case text && !file:
		p.file = ""
	case file && !text:
		p.text = ""
	}
}

// maxPromptFile is the longest system_prompt_file, in bytes.
const maxPromptFile = 1 << 20

// check refuses a configuration that makes no system prompt.
func (p promptConfig) check() error {
	if p.text != "" && p.file != "" {
		return configf("system_prompt and system_prompt_file exclude each other")
	}
	_, err := p.template()
	return err
}

// template is the text of the system prompt, its placeholders not filled in.
func (p promptConfig) template() (string, error) {
	if p.file == "" {
		return p.text, nil
	}
	f, err := os.Open(p.file)
	if err != nil {
		return "", unreadable("system_prompt_file", err).withHint("name a file that can be read, or leave the key out")
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return "", configf("system_prompt_file: %s is not a regular file", p.file)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxPromptFile+1))
	switch {
	case err != nil:
		return "", unreadable("system_prompt_file", err)
	case len(b) > maxPromptFile:
		return "", configf("system_prompt_file: %s has more than %d bytes", p.file, maxPromptFile)
	case !utf8.Valid(b):
		return "", configf("system_prompt_file: %s is not UTF-8", p.file)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// runnable refuses a configuration that no operation could be run with.
func (b *base) runnable() error {
	if err := b.config.prompt.check(); err != nil {
		return err
	}
	return b.config.hooks.check(b.tools)
}

// systemPrompt makes the system prompts of a session. Files are read once a process,
// when the first request needs them: what a run has begun with stays.
type systemPrompt struct {
	cwd      string
	template func() string
	files    func() []resource.ContextFile
	skills   func() []resource.Skill
}

func (b *base) systemPrompt(cwd string) systemPrompt {
	return systemPrompt{
		cwd: cwd, skills: b.skills,
		template: sync.OnceValue(func() string {
			text, err := b.config.prompt.template()
			if err != nil { // it has been read before
				b.out.note("note: %v", err)
			}
			return text
		}),
		files: sync.OnceValue(func() []resource.ContextFile {
			if b.config.prompt.context == nil {
				return nil
			}
			found, bad := resource.ContextFiles(cwd, b.home, b.config.prompt.context)
			report(b.out, bad)
			return found
		}),
	}
}

// text is the system prompt of one request: the text, then the context files, then
// the skills that the model may read.
func (s systemPrompt) text(p engine.Prompting) string {
	parts := []string{fillIn(s.template(), s.cwd, p), contextSection(s.files())}
	if slices.Contains(p.Tools, "read") {
		parts = append(parts, skillSection(s.skills()))
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.ToValidUTF8(strings.Join(parts, "\n\n"), "\ufffd")
}

// fillIn replaces the placeholders of a text. The date is that of the operation's
// start, so that it stays the same beyond midnight.
func fillIn(text, cwd string, p engine.Prompting) string {
	tools := strings.Join(p.Tools, ", ")
	if tools == "" {
		tools = "none"
	}
	return strings.NewReplacer(
		"{{date}}", time.UnixMilli(p.StartedAt).Format(time.DateOnly), "{{cwd}}", cwd, "{{tools}}", tools,
	).Replace(text)
}

func contextSection(files []resource.ContextFile) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("What these files say holds for the work here; where they differ the later one counts.")
	for _, f := range files {
		fmt.Fprintf(&b, "\n\n<file path=%q>\n%s\n</file>", f.Path, f.Text)
	}
	return b.String()
}

func skillSection(skills []resource.Skill) string {
	var b strings.Builder
	for _, s := range skills {
		if !s.Hidden {
			fmt.Fprintf(&b, "\n- %s: %s (%s)", s.Name, strings.Join(strings.Fields(s.Description), " "), s.Path)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "There are skills for some tasks. When one fits, read its file before you begin, and do what it says; relative paths in it start at its folder." + b.String()
}

// systemPromptOf is what a request of a lane would send now.
func (o *showOptions) systemPromptOf(ctx context.Context, r store.Reader) (string, error) {
	if _, err := o.config.prompt.template(); err != nil {
		return "", err
	}
	cwd, err := store.WorkingFolder(ctx, r)
	if err != nil {
		return "", err
	}
	cfg, ok, err := store.Get(ctx, r, store.LaneConfig(o.lane))
	if err != nil {
		return "", err
	}
	tools := cfg.Value.ActiveToolNames
	if !ok {
		tools = o.config.tools
	}
	return o.systemPrompt(cwd).text(engine.Prompting{Lane: o.lane, StartedAt: o.now(), Tools: tools}), nil
}
