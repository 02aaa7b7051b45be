package cli

import (
	"io"
	"strings"
)

// section is what people are told of a key that holds a mapping of names.
type section struct {
	key     string
	fields  []variable
	example string
}

func (s section) write(o *object) {
	o.str("key", s.key)
	o.array("fields", len(s.fields), func(i int, o *object) {
		o.str("name", s.fields[i].name)
		o.str("meaning", s.fields[i].what)
	})
	o.str("example", s.example)
}

func (s section) print(p *lines) {
	p.line("Each of %s has a name of letters, digits, underscores and hyphens, and any of\n", s.key)
	for _, f := range s.fields {
		p.line("  %s\n      %s", f.name, f.what)
	}
	p.line("\nsuch as\n\n%s", strings.TrimSuffix(example(s.example), "\n\n"))
}

// sections are the keys that hold mappings of names, as far as they have one.
func sections() []section { return []section{providersSection()} }

func providersSection() section {
	return section{
		key: "providers",
		fields: []variable{
			{"api", "what the endpoint speaks: openai-completions (the default), openai-responses or anthropic-messages; anthropic and openai speak their own"},
			{"base_url", "its address: what comes before /chat/completions or /responses, and before /v1/messages; anthropic and openai have theirs"},
			{"api_key_env", "the variable that holds the key; ANTHROPIC_API_KEY and OPENAI_API_KEY for those two, none for the others. A word of less than 8 characters is taken for a placeholder: it is sent, but not looked for in what errors and traces tell"},
			{"api_key_command", "a program with its arguments, in a list, that prints the key; it runs when a request is about to be made, once for the process"},
			{"headers", "headers that are sent with every request, by name"},
			{"timeout", "how long the server may send nothing (10m)"},
			{"ca_file", "a PEM file of authorities to trust beside the system's; relative to the configuration"},
			{"quirks.token_field", "the output limit's name in requests: max_tokens (the default) or max_completion_tokens"},
			{"quirks.system_role", "the role of the system prompt: system (the default) or developer"},
			{"quirks.stream_usage", "false when the server refuses to be asked for usage"},
			{"quirks.reasoning_field", "where thinking comes in answers: reasoning_content, reasoning or none; whichever is there by default"},
			{"quirks.reasoning_back", "true when the server wants a model's thinking back"},
			{"quirks.effort", "how a thinking level is asked for: reasoning_effort (the default), reasoning or none"},
			{"quirks.no_end", "true when the server closes an answer without saying that it is complete; a connection that breaks then looks the same"},
			{"models.ID.name", "the model's name for people"},
			{"models.ID.context_window", "how many tokens it takes and gives together"},
			{"models.ID.max_tokens", "how many of them it gives at most"},
			{"models.ID.thinking", "its thinking levels besides off, in a list"},
			{"models.ID.images", "true when it takes images"},
			{"models.ID.prices", "input, output, cache_read, cache_write, cache_write_1h: dollars for a million tokens"},
		},
		example: `providers:
  ollama:
    base_url: http://localhost:11434/v1
    models:
      qwen3:8b: {context_window: 40960, max_tokens: 8192, thinking: [low, medium, high]}
  openrouter:
    base_url: https://openrouter.ai/api/v1
    api_key_env: OPENROUTER_API_KEY
    quirks: {effort: reasoning}
  anthropic:
    api_key_command: [pass, show, anthropic]
`,
	}
}

func helpProviders(out *printer) error {
	s := providersSection()
	return out.result(nil, s.write, func(w io.Writer) error {
		p := &lines{w: w}
		p.line("%s", providersIntro)
		s.print(p)
		p.line("\n%s", providersEnd)
		return p.err
	})
}

const providersIntro = `A model is named PROVIDER/ID. The providers anthropic and openai need nothing but a
key, in ANTHROPIC_API_KEY or OPENAI_API_KEY; any other endpoint that speaks an
interface of theirs is a provider once the configuration describes it:

  providers:
    ollama: {base_url: "http://localhost:11434/v1"}

  drover prompt --new --model ollama/qwen3:8b hello

"drover model list" shows the models that are described, and which can be used;
others work as well, with assumptions about their limits and without prices. "drover
doctor" looks for keys and asks nobody. Keys are never stored: they stand in a
variable, or a program prints them.
`

const providersEnd = `Requests go through HTTPS_PROXY or HTTP_PROXY, but to hosts in NO_PROXY. With
--trace-http FILE what is said to models and back is kept, without keys.`
