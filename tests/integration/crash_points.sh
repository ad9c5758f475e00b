#!/usr/bin/env bash
# vx is killed at every named point of save, restore, clean, prune and recovery.
exec python3 "$(dirname "$0")/../crash.py" points
