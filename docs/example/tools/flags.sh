# Sourced by the other scripts.
export CCACHE_DISABLE=1 # where `cc` is ccache it would write into the home directory, which the sandbox does not grant; vx's cache does the work
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Werror"
includes=
archives=

# use_libraries NAME...: what their builds left in dist/, dependents before their dependencies as the linker wants it.
use_libraries() {
	for library in "$@"; do
		includes="$includes -I../../libs/$library/dist/include"
		archives="$archives ../../libs/$library/dist/lib$library.a"
	done
}
