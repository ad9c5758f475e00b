#!/usr/bin/env bash
# The model of segments at length, anew each time.
VX_MODEL_STEPS=20000 VX_MODEL_SEED=${VX_MODEL_SEED:-${VX_SEED:-7}} exec "${VX_BUILD:-build}/tests/model/test_segment_model"
