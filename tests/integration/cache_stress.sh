#!/usr/bin/env bash
# Random graphs, edits and interruptions; and several processes on one store. Short; tests/slow has the long ones.
set -e
python3 "$(dirname "$0")/../property.py" 4 5
python3 "$(dirname "$0")/../stress.py" concurrent 5
