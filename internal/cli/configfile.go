package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/drover-run/drover/internal/yamlpos"
)

// configPath says which configuration file counts: the flag, the environment,
// or the default when that exists. It is never looked for in the working
// directory, since it can name programs to run. "" means none.
func configPath(flag string, env func(string) string) string {
	if flag != "" {
		return flag
	}
	if path := env("DROVER_CONFIG"); path != "" {
		return path
	}
	path := defaultConfig(env)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

// defaultConfig is where the file lies that nobody has to name, "" without a home.
func defaultConfig(env func(string) string) string {
	dir, ok := homeFolder(env, "XDG_CONFIG_HOME", ".config")
	if !ok {
		return ""
	}
	return filepath.Join(dir, "drover", "config.yaml")
}

// configPlace names the configuration file for people, also one that is not there yet.
func (f *factory) configPlace() string {
	if path := configPath(f.flags.config, f.env); path != "" {
		return escapeLine(path)
	}
	if path := defaultConfig(f.env); path != "" {
		return escapeLine(path) + ", which is not there yet"
	}
	return "what --config names"
}

// readConfigFile reads the keys of a configuration file.
func readConfigFile(path string, stdin io.Reader) (map[string]located, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		text, err := io.ReadAll(stdin)
		if err != nil {
			return nil, unreadable("read the configuration from stdin", err)
		}
		return parseConfig("stdin", text)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable("open the configuration", err)
	}
	defer f.Close()
	if err := checkConfigOwner(f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, unreadable("read the configuration", err)
	}
	return parseConfig(path, text)
}

// unreadable tells a file that is not there, a wrong argument, from one that the
// system does not let us read.
func unreadable(doing string, err error) *failure {
	f := configf("%s: %v", doing, err)
	if !errors.Is(err, fs.ErrNotExist) {
		f.code, f.tag = exitIO, "io"
	}
	f.cause = err
	return f
}

// checkConfigOwner refuses a file that somebody else could have written (D49).
func checkConfigOwner(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return configf("read the configuration: %v", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return configf("configuration %s can be written by others (mode %04o)", f.Name(), info.Mode().Perm()).
			withHint("chmod go-w %s", f.Name())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Getuid() {
		return configf("configuration %s belongs to another user (uid %d)", f.Name(), st.Uid)
	}
	return nil
}

// parseConfig flattens the YAML document to dotted keys and refuses keys that
// mean nothing.
func parseConfig(name string, text []byte) (map[string]located, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, second yaml.Node
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	}
	if err == nil {
		err = d.Decode(&second)
	}
	switch {
	case err == nil:
		return nil, configf("%s: a configuration is one document", at(name, &second))
	case !errors.Is(err, io.EOF):
		line, column := yamlpos.Locate(text, err)
		return nil, configf("%s:%d:%d: %s", name, line, column, yamlpos.Message(err))
	}
	keys := map[string]located{}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return keys, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, configf("%s: the configuration must be a mapping of keys to values", at(name, root))
	}
	return keys, flattenConfig(keys, name, "", root)
}

func flattenConfig(keys map[string]located, name, prefix string, node *yaml.Node) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		if v.Kind == yaml.AliasNode {
			v = v.Alias
		}
		key := prefix + k.Value
		where := at(name, k)
		if _, twice := keys[key]; twice {
			return configf("%s: %s is given twice", where, key)
		}
		s, known := findSetting(key)
		switch {
		case slices.Contains(documentKeys(), key):
			keys[key] = located{where: where, node: v, name: name}
		case known && v.Kind == yaml.ScalarNode:
			if v.Tag == "!!null" {
				return configf("%s: %s has no value", where, key)
			}
			keys[key] = located{value: v.Value, where: where}
		case known && s.list && v.Kind == yaml.SequenceNode:
			keys[key] = located{value: joinSequence(v), where: where}
		case known:
			return configf("%s: %s must be a single value", where, key)
		case isSection(key) && v.Kind == yaml.MappingNode:
			if err := flattenConfig(keys, name, key+".", v); err != nil {
				return err
			}
		case isSection(key):
			return configf("%s: %s must be a mapping of keys to values", where, key)
		default:
			return unknownKey(where, key)
		}
	}
	return nil
}

func joinSequence(node *yaml.Node) string {
	parts := make([]string, len(node.Content))
	for i, item := range node.Content {
		parts[i] = item.Value
	}
	return strings.Join(parts, ",")
}

func findSetting(key string) (setting, bool) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return all[i], true
}

func isSection(key string) bool {
	return slices.ContainsFunc(settings(), func(s setting) bool { return strings.HasPrefix(s.key, key+".") })
}

func unknownKey(where, key string) error {
	if first, _, _ := strings.Cut(key, "."); slices.Contains(laterKeys(), first) {
		return configf("%s: %s is not supported by this version of drover", where, escapeLine(key))
	}
	var names []string
	for _, s := range settings() {
		names = append(names, s.key)
	}
	names = append(names, documentKeys()...)
	return configf("%s: unknown key %s; the nearest valid one is %s", where, escapeLine(key), nearest(key, names))
}

func at(name string, node *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", name, node.Line, node.Column)
}
