#!/usr/bin/env bash
# Eight processes on one store for a minute, while somebody damages what is in it.
exec python3 "$(dirname "$0")/../stress.py" damaged 60
