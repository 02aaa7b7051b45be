package message

import "github.com/drover-run/drover/internal/rawjson"

// NewUser builds a user message: text as one block, then the images, stamped in
// Unix ms. With images an empty text is left out.
func NewUser(text string, images []Block, timestamp int64) Message {
	blocks := make([]Block, 0, 1+len(images))
	if text != "" || len(images) == 0 {
		blocks = append(blocks, TextBlock(text))
	}
	return userMessage(appendBlocks(nil, append(blocks, images...)), timestamp)
}

// userMessage builds a user message around a raw content.
func userMessage(content []byte, timestamp int64) Message {
	m := appendRaw(make([]byte, 0, len(content)+64), `{"role":"user","content":`, content)
	return append(appendInt(m, `,"timestamp":`, timestamp), '}')
}

// NewToolResult builds the toolResult message of a call, stamped in Unix ms.
// Terminate is not part of it: it belongs to the entry (spec §2.1).
func NewToolResult(callID, toolName string, r ToolResult, timestamp int64) Message {
	m := appendString(nil, `{"role":"toolResult","toolCallId":`, callID)
	m = appendString(m, `,"toolName":`, toolName)
	m = appendBlocks(append(m, `,"content":`...), r.Content)
	m = appendOptionalRaw(m, `,"details":`, r.Details)
	if r.Usage != nil {
		m, _ = r.Usage.AppendJSON(append(m, `,"usage":`...))
	}
	if len(r.AddedToolNames) > 0 {
		m = append(m, `,"addedToolNames":[`...)
		for i, n := range r.AddedToolNames {
			if i > 0 {
				m = append(m, ',')
			}
			m = rawjson.AppendQuote(m, n)
		}
		m = append(m, ']')
	}
	m = append(m, `,"isError":`...)
	if r.IsError {
		m = append(m, "true"...)
	} else {
		m = append(m, "false"...)
	}
	return append(appendInt(m, `,"timestamp":`, timestamp), '}')
}
