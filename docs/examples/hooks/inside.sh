#!/bin/sh
# before_tool, of write and edit: refuses files outside of a folder, which is the
# session's own unless GUARD_FOLDER names another. It fails closed: what it does not
# understand, such as a path with escapes, is refused too.

refuse() {
	printf '{"block":{"reason":"%s"}}\n' "$1"
	exit 0
}

# In JSON a quote within a string has a backslash before it, so this is the field
# and never a piece of the file's text.
path=$(sed -n 's/^.*"path":"\([^"]*\)".*$/\1/p')
case $path in
'' | *\\* | '~'*) refuse 'the guard does not understand this path' ;;
/*) ;;
*) path=$PWD/$path ;;
esac
case $path/ in
*/../*) refuse 'the guard takes no path with ..' ;;
esac
[ -L "$path" ] && refuse 'the guard takes no symbolic link'

# Links among the folders count as what they lead to.
dir=$(dirname "$path")
while [ ! -d "$dir" ]; do dir=$(dirname "$dir"); done
dir=$(cd "$dir" && pwd -P) || exit 1
folder=$(cd "${GUARD_FOLDER:-$PWD}" && pwd -P) || exit 1
case $dir/ in
"$folder"/*) exit 0 ;;
esac
refuse "files are written below $folder only"
