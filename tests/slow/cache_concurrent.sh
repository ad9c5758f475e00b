#!/usr/bin/env bash
# Eight processes on one store for a minute.
exec python3 "$(dirname "$0")/../stress.py" concurrent 60
