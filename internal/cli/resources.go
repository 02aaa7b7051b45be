package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/resource"
	"github.com/drover-run/drover/pkg/engine"
	"github.com/drover-run/drover/pkg/message"
)

// folders reads a list of folders: one text or a sequence of them in the file,
// relative to the file; the environment's are relative to the working directory.
func folders(from sources, key string) ([]string, error) {
	var dirs []string
	base := ""
	if text := from.env(envName(key)); text != "" {
		dirs = filepath.SplitList(text)
	} else if found, ok := from.file[key]; ok {
		nodes := []*yaml.Node{found.node}
		if found.node.Kind == yaml.SequenceNode {
			nodes = found.node.Content
		}
		for _, n := range nodes {
			if n.Kind != yaml.ScalarNode || n.Tag != "!!str" {
				return nil, configf("%s: %s must be a folder or a list of folders", at(found.name, n), key)
			}
			dirs = append(dirs, n.Value)
		}
		base = from.dir
	}
	for i, dir := range dirs {
		path, err := locateFolder(dir, base, from.env)
		if err != nil {
			return nil, configf("%s: %v", key, err)
		}
		dirs[i] = path
	}
	return dirs, nil
}

func locateFolder(dir, base string, env func(string) string) (string, error) {
	if dir == "" {
		return "", fmt.Errorf("a folder has an empty name")
	}
	dir, err := expandFolder(dir, base, env)
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// expandFolder gives ~ its meaning, and a relative folder the one it starts at.
func expandFolder(dir, base string, env func(string) string) (string, error) {
	if rest, ok := strings.CutPrefix(dir, "~"); ok && (rest == "" || rest[0] == '/') {
		home := env("HOME")
		if home == "" {
			return "", fmt.Errorf("%s: HOME is not set", dir)
		}
		return filepath.Join(home, rest), nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	return dir, nil
}

// resourceFlags ask for a message that is made of a skill or a template.
type resourceFlags struct {
	skill        string
	instructions string
	template     string
	args         []string
}

func (r *resourceFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&r.skill, "skill", "", "have the model use the skill with this `NAME`")
	flags.StringVar(&r.instructions, "instructions", "", "with --skill, what else to tell it, as `TEXT`")
	flags.StringVar(&r.template, "template", "", "send the prompt template with this `NAME`; TEXT holds its arguments")
	flags.StringArrayVar(&r.args, "arg", nil, "with --template, one `ARGUMENT` as it is; may be repeated")
	mayBeEmpty(flags, "instructions", "arg")
}

func (r *resourceFlags) given() bool { return r.skill != "" || r.template != "" }

// check refuses what does not go together.
func (r *resourceFlags) check(cmd *cobra.Command, in *input) error {
	changed := cmd.Flags().Changed
	switch {
	case r.skill != "" && r.template != "":
		return usagef("--skill and --template exclude each other")
	case r.skill == "" && changed("instructions"):
		return usagef("--instructions goes with --skill only")
	case r.template == "" && changed("arg"):
		return usagef("--arg goes with --template only")
	case !r.given():
		return nil
	case in.message != "" || len(in.images) > 0:
		return usagef("--skill and --template take no --message and no --image")
	case r.skill != "" && len(in.words) > 0:
		return usagef("--skill takes no TEXT").withHint("add to it with --instructions")
	case len(r.args) > 0 && len(in.words) > 0:
		return usagef("--arg and TEXT exclude each other")
	}
	for _, text := range append(r.args, r.instructions) {
		if err := checkUTF8("the text", []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// message makes the message that was asked for.
func (r *resourceFlags) message(b *base, in *input) (message.Message, error) {
	now := b.now()
	if r.skill != "" {
		return r.skillMessage(b.skills(), now)
	}
	templates, bad := resource.Templates(b.config.templates)
	report(b.out, bad)
	for _, t := range templates {
		if t.Name == r.template {
			args, err := r.arguments(in)
			if err != nil {
				return nil, err
			}
			return message.NewUser(t.Expand(args), nil, now), nil
		}
	}
	var names []string
	for _, t := range templates {
		names = append(names, t.Name)
	}
	return nil, unknownResource("template", r.template, names)
}

func (r *resourceFlags) skillMessage(skills []resource.Skill, now int64) (message.Message, error) {
	var names []string
	for _, s := range skills {
		if s.Name == r.skill {
			asked := engine.Skill{Name: s.Name, Description: s.Description, Body: s.Body, Base: s.Base}
			return asked.Message(r.instructions, now), nil
		}
		names = append(names, s.Name)
	}
	return nil, unknownResource("skill", r.skill, names)
}

// arguments are the template's: as given, or a text split as a shell would.
func (r *resourceFlags) arguments(in *input) ([]string, error) {
	if len(in.words) == 0 {
		return r.args, nil
	}
	text := strings.Join(in.words, " ")
	if err := checkUTF8("the text", []byte(text)); err != nil {
		return nil, err
	}
	args, err := resource.SplitArgs(text)
	if err != nil {
		return nil, usagef("TEXT: %v", err)
	}
	return args, nil
}

func report(p *printer, bad []resource.Diagnostic) {
	for _, d := range bad {
		p.note("note: %s: %s", escapeLine(d.Path), escapeLine(d.Message))
	}
}

func unknownResource(kind, name string, known []string) error {
	f := notFoundf("unknown_"+kind, "there is no %s %q", kind, escapeLine(name))
	f.details = func(d *object) { d.str("name", name) }
	if len(known) == 0 {
		return f.withHint("name the folders of your %ss in the configuration: %ss: [DIR]", kind, kind)
	}
	return f.withHint("the nearest is %s", nearest(name, known))
}
