package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServerMain is an MCP server for scripts.
func mcpServerMain() {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Says it again.", InputSchema: schema}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Text string }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		text := fmt.Sprintf("you said %s, ANTHROPIC_API_KEY is %s", args.Text, os.Getenv("ANTHROPIC_API_KEY"))
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "die", Description: "Dies.", InputSchema: schema}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(9)
		return nil, nil
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
