#!/bin/sh
# Prompt hook of a coding agent: a turn begins. What waits for the agent goes with the prompt, and
# until the turn's end nothing else is handed over.
#   AMP_AGENT  whose inbox it is        AMP_STATE  the state directory
set -eu
status=0
amp-route inbox "$AMP_AGENT" --idle --between-turns --format text || status=$?
case $status in
0 | 1 | 75) ;; # 1: nothing waits; 75: another process hands over to this agent
*) exit "$status" ;;
esac
exec amp-route inbox "$AMP_AGENT" --busy
