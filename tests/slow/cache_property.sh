#!/usr/bin/env bash
# Random graphs, edits and interruptions at length.
exec python3 "$(dirname "$0")/../stress.py" property 60 12
