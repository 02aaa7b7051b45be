# Everything a developer runs. `make test` is what must pass before a change
# lands; it needs Go and, for the race detector, a C compiler.

GO       ?= go
MODULE   := github.com/drover-run/drover
TESTTIME ?= 15m
FUZZTIME ?= 1m
BENCH    ?= .

# The race detector needs cgo, and cgo a C compiler.
CC_FOUND := $(shell command -v $$($(GO) env CC) 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race)

.PHONY: build test test-long test-mock bench man completions tidy-check
.PHONY: check-format vet staticcheck test-race test-plain

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/drover ./cmd/drover

test: check-format vet staticcheck test-plain test-race
	@$(if $(RACE),:,echo "note: no C compiler was found, so nothing ran under the race detector")

check-format:
	@files=$$(gofmt -l bench cmd internal pkg); test -z "$$files" || { echo "gofmt would change:"; echo "$$files"; exit 1; }

# To vet what links a vendor's SDK, vet reads all of the SDK: test-long does that.
SDKS := github.com/anthropics/anthropic-sdk-go/v2 github.com/openai/openai-go/v3/option
vet:
	$(GO) vet $$($(GO) list -f '{{$$sdk := false}}{{range .Deps}}{{if or $(foreach m,$(SDKS),(eq . "$m"))}}{{$$sdk = true}}{{end}}{{end}}{{if not $$sdk}}{{.ImportPath}}{{end}}' ./...)

staticcheck: bin/staticcheck
	bin/staticcheck ./...

bin/staticcheck: tools/go.mod tools/go.sum
	CGO_ENABLED=0 $(GO) build -C tools -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@touch bin/staticcheck

# SQLite is a large body of translated C, and the vendors' SDKs are large too:
# instrumenting them takes minutes. What links any of these runs plain here, and so
# does what starts itself hundreds of times in its tests; test-long races those.
# vet has run before: tests need not run it again.
SPAWNING     := pkg/hook pkg/tool pkg/tool/program
HEAVY        := modernc.org/sqlite $(SDKS) github.com/modelcontextprotocol/go-sdk/mcp google.golang.org/grpc
heavy_linked = $(GO) list -test -f '{{range .Deps}}{{if or $(foreach m,$(HEAVY),(eq . "$m"))}}{{$$.ImportPath}}{{"\n"}}{{end}}{{end}}' ./... \
	| sed -n 's/\.test$$//p' | sort -u; printf '$(MODULE)/%s\n' $(SPAWNING)

test-plain:
	$(GO) test -vet=off -timeout $(TESTTIME) $$($(heavy_linked))

test-race:
	$(if $(RACE),CGO_ENABLED=1 )$(GO) test $(RACE) -vet=off -timeout $(TESTTIME) $$($(GO) list ./... | grep -vxF "$$($(heavy_linked))")

# What takes too long for every change: the full kill matrices, large inputs,
# and a while of every fuzz target.
test-long:
	$(GO) vet ./...
	DROVER_TEST_LONG=1 $(GO) test -timeout 2h ./...
	$(if $(RACE),CGO_ENABLED=1 )$(GO) test $(RACE) -timeout 1h ./pkg/store/sqlite ./pkg/tool/mcp $(addprefix ./,$(SPAWNING))
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$pkg || exit 1; \
		done; \
	done

# The providers and the command line against a mock server that others have written.
# It needs Node.js 20 with npm; the server lies in a folder that is removed again.
AIMOCK := @copilotkit/aimock@1.43.0
test-mock:
	@command -v node >/dev/null || { echo "test-mock: skipped, there is no Node.js (node) to run $(AIMOCK) with"; exit 0; }; \
	command -v npm >/dev/null || { echo "test-mock: there is Node.js, but no npm to install $(AIMOCK) with" >&2; exit 1; }; \
	dir=$$(mktemp -d) || exit 1; \
	trap 'rm -rf "$$dir"' EXIT; trap 'exit 1' HUP INT TERM; \
	npm install --prefix "$$dir" --ignore-scripts --no-audit --no-fund --loglevel error $(AIMOCK) || \
		{ echo "test-mock: npm could not install $(AIMOCK)" >&2; exit 1; }; \
	DROVER_TEST_MOCK="$$dir/node_modules/@copilotkit/aimock/dist/cli.js" \
		$(GO) test -count=1 -vet=off -timeout $(TESTTIME) -run '^TestMock' ./pkg/model/anthropic ./pkg/model/openai ./internal/cli

# Each figure stands beside its yardstick, measured in the same run. The ones
# against C SQLite are a module of their own and need a C compiler.
bench: build
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 1h ./...
	@if [ -n "$(CC_FOUND)" ]; then \
		cd bench && CGO_ENABLED=1 $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 1h ./...; \
	else \
		echo "note: no C compiler was found, so nothing was measured against C SQLite"; \
	fi

man: build
	bin/drover man man
	@echo "the pages are in man: read them with man man/drover.1, or copy them into the man1 and man7 of your MANPATH"

completions: build
	mkdir -p completions
	bin/drover completion bash > completions/drover.bash
	bin/drover completion zsh > completions/_drover
	bin/drover completion fish > completions/drover.fish
	bin/drover completion powershell > completions/drover.ps1

# modernc.org/sqlite works with exactly the libc that its own go.mod names.
tidy-check:
	$(GO) mod tidy -diff
	$(GO) mod verify
	@sqlite=$$($(GO) list -m -f '{{.GoMod}}' modernc.org/sqlite); \
	want=$$(sed -n 's/^[[:space:]]*modernc.org\/libc \(v[^ ]*\).*/\1/p' $$sqlite); \
	have=$$($(GO) list -m -f '{{.Version}}' modernc.org/libc); \
	test "$$want" = "$$have" || { echo "modernc.org/libc is $$have, sqlite wants $$want"; exit 1; }
