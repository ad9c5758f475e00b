#!/bin/sh
# The fault test of the lanes, every call in every way.
VX_ALL_FAULTS=1 exec "${VX_BUILD:-build}/tests/fault/test_lane_faults"
