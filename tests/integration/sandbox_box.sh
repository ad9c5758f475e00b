#!/bin/bash
# What works in the sandbox, and what is left when it is over: programs, signals, placeholders, kills, accounting; as root and as a normal user.
. "$(dirname "$0")/escape/asboth.sh"
as_root programs.py root
as_user programs.py user
done_testing
