package cli

import "io"

const skillsExample = `skills: [skills, ~/team/skills]
`

const skillFile = `---
name: release-notes
description: Writes release notes from the commits since the last tag.
---
Run ` + "`git log $(git describe --tags --abbrev=0)..HEAD --oneline`" + `, leave out what users
do not notice, and write one line for each of the others. style.md shows the tone.
`

const templatesExample = `templates: templates
`

const templateFile = `---
description: Review one file.
---
Review $1 as a colleague would. Look at ${@:2} above all.
`

// resourceTopic is what people are told of folders with files for prompts.
type resourceTopic struct {
	intro   string
	config  string // an example
	path    string // of an example of a file, below the folder
	file    string // which holds this
	fields  []variable
	places  []variable
	closing string
}

func skillsTopic() resourceTopic {
	return resourceTopic{
		intro: `A skill is a folder with a SKILL.md that says how some task is done, in the open
Agent Skills format; what else lies in the folder belongs to it. The key skills names
the folders that are searched for skills, at any depth:`,
		config: skillsExample, path: "skills/release-notes/SKILL.md", file: skillFile,
		fields: []variable{
			{"name", "lower case letters, digits and single hyphens; the same as the folder's"},
			{"description", "when the skill is of use: models choose by it"},
			{"disable-model-invocation", "true: only --skill uses it"},
		},
		closing: `"drover prompt SESSION --skill NAME" sends the text of a skill as a message, with
--instructions behind it. Models of lanes that have the tool read are told the names
and descriptions of all skills with every request, and read the file of one that fits.

A Markdown file with such a beginning right in one of the folders is a skill, too. Of
two with one name the first counts. .gitignore and .ignore are honoured. What is no
skill is told and left out: "drover doctor" looks at all of them.`,
	}
}

func templatesTopic() resourceTopic {
	return resourceTopic{
		intro: `A template is a Markdown file that is a prompt with places for arguments. Its name
is the file's, without .md. The key templates names the folders that hold them:`,
		config: templatesExample, path: "templates/review.md", file: templateFile,
		fields: []variable{{"description", "for people; the part between the lines --- may be missing"}},
		places: []variable{
			{"$1 to $9", "an argument; nothing when it is missing"},
			{"$@, $ARGUMENTS", "all of them, with blanks between"},
			{"${@:N}", "those from the N-th on"},
			{"${@:N:L}", "L of them from the N-th on"},
		},
		closing: `"drover prompt SESSION --template review store.go 'locking and errors'" sends it: the
text is split as a shell would do it. With --arg, once for each argument, nothing is
split. What an argument holds is not expanded again. Of two templates with one name
the first counts. .gitignore and .ignore are honoured. What is no template is told and
left out: "drover doctor" looks at all of them.`,
	}
}

func helpSkills(out *printer) error    { return skillsTopic().print(out) }
func helpTemplates(out *printer) error { return templatesTopic().print(out) }

func (t resourceTopic) print(out *printer) error {
	write := func(all []variable) func(int, *object) {
		return func(i int, o *object) {
			o.str("name", all[i].name)
			o.str("meaning", all[i].what)
		}
	}
	return out.result(nil, func(o *object) {
		o.array("fields", len(t.fields), write(t.fields))
		o.array("places", len(t.places), write(t.places))
		o.str("example", t.config)
		o.str("file", t.file)
	}, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s\n\n%sand in %s stands\n\n%sIt begins with\n", t.intro, example(t.config), t.path, example(t.file))
		for _, f := range t.fields {
			p.line("  %s\n%s", f.name, wrap(f.what, "      "))
		}
		if t.places != nil {
			p.line("\nThe places are\n")
		}
		for _, f := range t.places {
			p.line("  %-14s  %s", f.name, f.what)
		}
		p.line("\n%s", t.closing)
		return p.err
	})
}
