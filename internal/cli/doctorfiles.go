package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-run/drover/internal/resource"
)

// files looks at the files and folders that keys of the configuration name, and
// that nothing opens before a run needs them.
func (o *doctorOptions) files(c *config) []finding {
	var all []finding
	if c.skills != nil {
		skills, bad := resource.Skills(c.skills)
		all = append(all, resourcesIn("skills", c.skills, len(skills), bad)...)
	}
	if c.templates != nil {
		templates, bad := resource.Templates(c.templates)
		all = append(all, resourcesIn("templates", c.templates, len(templates), bad)...)
	}
	if c.prompt.text != "" || c.prompt.file != "" {
		all = append(all, promptFinding(c.prompt))
	}
	if c.prompt.context != nil {
		all = append(all, o.contextFiles(c.prompt.context)...)
	}
	return append(all, o.telemetry(c)...)
}

// resourcesIn says what the folders of a key hold. What cannot be used is left out
// when a run looks for it, so that this is no more than a doubt.
func resourcesIn(key string, folders []string, found int, unusable []resource.Diagnostic) []finding {
	var all []finding
	for _, d := range unusable {
		todo := "correct it, or the run goes without"
		if slices.Contains(folders, d.Path) {
			todo = fmt.Sprintf("make the folder readable, or name another one with the key %s", key)
			if _, err := os.Stat(d.Path); errors.Is(err, fs.ErrNotExist) {
				todo = fmt.Sprintf("make the folder, or name another one with the key %s", key)
			}
		}
		all = append(all, doubtful(key, "%s: %s; %s", d.Path, d.Message, todo))
	}
	switch where := strings.Join(folders, ", "); {
	case found > 0:
		all = append(all, good(key, "%d in %s", found, where))
	case len(all) == 0:
		all = append(all, doubtful(key, "there are none in %s; `drover help %s` says how one is written", where, key))
	}
	return all
}

func promptFinding(p promptConfig) finding {
	const name = "system-prompt"
	if err := p.check(); err != nil {
		return bad(name, err)
	}
	if p.file != "" {
		return good(name, "that of system_prompt_file, %s", p.file)
	}
	return good(name, "that of system_prompt")
}

// contextFiles are those that a session of the working directory would get.
func (o *doctorOptions) contextFiles(names []string) []finding {
	const name = "context-files"
	cwd, err := os.Getwd()
	if err != nil {
		return []finding{doubtful(name, "the working directory is not known: %v", err)}
	}
	found, unusable := resource.ContextFiles(cwd, o.f.env("HOME"), names)
	var all []finding
	for _, d := range unusable {
		all = append(all, doubtful(name, "%s: %s; correct it, or requests go without; context_files names it", d.Path, d.Message))
	}
	if len(found) == 0 && len(all) == 0 {
		return []finding{good(name, "no %s here or above", strings.Join(names, " or "))}
	}
	for _, f := range found {
		all = append(all, good(name, "%s", f.Path))
	}
	return all
}

// telemetry says where spans go. Those that cannot be written are lost, and stop
// nothing; what of the environment cannot be done stops every run.
func (o *doctorOptions) telemetry(c *config) []finding {
	const name = "telemetry"
	if _, err := o.f.spans(); err != nil {
		return []finding{bad(name, err)}
	}
	if c.telemetryFile == "" {
		return nil
	}
	if err := appendable(c.telemetryFile); err != nil {
		return []finding{doubtful(name, "telemetry.file: %v; spans are lost until it can be written", err)}
	}
	return []finding{good(name, "spans go to telemetry.file, %s", c.telemetryFile)}
}

// appendable says why a file could not be made or written to. It neither makes nor
// opens it.
func appendable(path string) error {
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return fmt.Errorf("%s is a folder", path)
	case err == nil:
		return tryToAppend(path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir := filepath.Dir(path)
	if why := unusableFolder(dir); why != "" {
		return fmt.Errorf("the folder of %s cannot be used: %s", filepath.Base(path), why)
	}
	return tryToWrite(dir)
}
