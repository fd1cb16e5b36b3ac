#!/bin/sh
# Prompt hook of a coding agent, for the start of a turn. Waiting messages become part of the prompt,
# and no message is handed over until the end of the turn.
#   AMP_AGENT  the agent        AMP_STATE  the state directory
set -eu
status=0
amp-route inbox "$AMP_AGENT" --idle --between-turns --format text || status=$?
case $status in
0 | 1 | 75) ;; # 1: the inbox is empty; 75: another process reads it
*) exit "$status" ;;
esac
exec amp-route inbox "$AMP_AGENT" --busy
