#!/bin/sh
# before_run: tells the model what git says of the session's folder.

state=$(git status --short --branch 2>/dev/null | head -n 50)
[ -n "$state" ] || exit 0 # no repository: nothing to add

# As a JSON string: no control characters, backslashes and quotes escaped.
text=$(
	printf 'The state of the working folder, by git:\n%s\n' "$state" |
		tr -d '\000-\010\013-\037' | tr '\t' ' ' | sed 's/[\\"]/\\&/g' |
		awk '{ printf "%s\\n", $0 }'
)
printf '{"messages":[{"role":"user","content":"%s"}]}\n' "$text"
