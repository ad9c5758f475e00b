#!/usr/bin/env bash
# vx is killed at 500 random moments.
exec python3 "$(dirname "$0")/../crash.py" random 500
