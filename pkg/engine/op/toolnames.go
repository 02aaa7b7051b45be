package op

import (
	"slices"

	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/message"
	"github.com/drover-run/drover/pkg/store"
)

// addedTools are the tool names that a result makes active.
func addedTools(result message.Message) []string {
	raw, ok := result.Get("addedToolNames")
	if !ok {
		return nil
	}
	var names []string
	for element, err := range rawjson.Elements(raw) {
		if err != nil {
			return names
		}
		if name, err := rawjson.Unquote(element); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// withTools adds names to a configuration (D38).
func withTools(cfg store.LaneConfiguration, names []string) (store.LaneConfiguration, bool) {
	active := slices.Clone(cfg.ActiveToolNames)
	for _, name := range names {
		if !slices.Contains(active, name) {
			active = append(active, name)
		}
	}
	changed := len(active) != len(cfg.ActiveToolNames)
	cfg.ActiveToolNames = active
	return cfg, changed
}
