#!/usr/bin/env bash
# What is granted is exchanged for links while sandboxes are built: nothing beyond the grants is ever read, written, created or removed.
. "$(dirname "$0")/../integration/escape/asboth.sh"
export T_SECONDS=${T_SECONDS:-8}
as_root swaps.py root
as_user swaps.py user
as_user swaps.py plain VX_SANDBOX_BACKEND=plain
done_testing
