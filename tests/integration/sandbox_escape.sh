#!/bin/bash
# Attempts at getting out of the sandbox, and isolation between tasks, as root and as a normal user.
. "$(dirname "$0")/escape/asboth.sh"
as_root run.py root
as_user run.py user
as_user run.py plain VX_SANDBOX_BACKEND=plain
done_testing
