package openai

import (
	"github.com/drover-run/drover/internal/rawjson"
	"github.com/drover-run/drover/pkg/model/answer"
)

// chatCall is a tool call as far as it has come.
type chatCall struct {
	block *answer.Block
	index int64 // -1 where the server has none
	id    string
	args  []byte // so far, while there is no id to tell calls by
}

// call takes a piece of a tool call, or all of one.
func (c *chat) call(raw []byte) {
	id, _ := rawjson.GetString(raw, "id")
	index, ok := rawjson.GetInt(raw, "index")
	if !ok {
		index = -1
	}
	function, _ := rawjson.Get(raw, "function")
	name, _ := rawjson.GetString(function, "name")
	args, _ := rawjson.Get(function, "arguments")
	k := c.find(index, id, name)
	if k == nil {
		k = &chatCall{block: c.b.ToolCall(id, name), index: index, id: id}
		c.calls = append(c.calls, k)
	}
	if k.id == "" {
		k.id = id
		k.block.Name(id, "")
	}
	k.grow(name, args)
}

// find returns the call that a piece belongs to, nil when it begins one. Servers
// leave out the index or number all calls 0, name the id once, always or never.
func (c *chat) find(index int64, id, name string) *chatCall {
	for i := len(c.calls) - 1; i >= 0; i-- {
		k := c.calls[i]
		switch {
		case id != "" && k.id != "" && k.id != id:
			continue
		case index >= 0 && k.index >= 0 && k.index != index:
			continue
		case id == "" && name != "" && k.whole():
			continue // it has all it needs: this is another one without an id
		}
		return k
	}
	return nil
}

// whole tells whether the arguments are complete.
func (k *chatCall) whole() bool {
	return rawjson.KindOf(k.args) == rawjson.Object && rawjson.Valid(k.args) == nil
}

// grow takes more of the call. Arguments come as text, or as what the text would
// say.
func (k *chatCall) grow(name string, args []byte) {
	k.block.Name("", name)
	text := str(args)
	if rawjson.KindOf(args) == rawjson.Object {
		text = string(args)
	}
	if k.id == "" {
		k.args = append(k.args, text...)
	}
	k.block.Add(text)
}
