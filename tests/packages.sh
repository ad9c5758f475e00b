# Sourced after lib.sh by tests that edit a small workspace, $W/ws with packages/*: $tasks is the vx.json of each, $mark what its source holds after its name.
cd "$W" && mkdir ws && cd ws || exit 1
git init -q . 2>/dev/null
project() { # NAME [DEPENDENCY...]
	mkdir -p "packages/$1/src"
	local n=$1 deps=
	shift
	for d in "$@"; do deps="$deps${deps:+,}\"$d\":\"workspace:*\""; done
	echo "{\"name\":\"$n\",\"version\":\"1.0.0\",\"dependencies\":{$deps}}" >"packages/$n/package.json"
	printf '%s\n' "$tasks" >"packages/$n/vx.json"
	echo "$n${mark:-}" >"packages/$n/src/a.c"
}
echo '{"name":"root","private":true,"workspaces":["packages/*"]}' >package.json
echo '{}' >base.json
