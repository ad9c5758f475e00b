#!/usr/bin/env bash
# Random graphs, edits, damage and interruptions at length.
exec python3 "$(dirname "$0")/../property.py" 60 12
