#!/bin/sh
# Stop hook of a coding agent, for the end of a turn. If messages are waiting, the agent continues:
# the decision is "block", and the reason has the messages. Otherwise nothing is printed.
#   AMP_AGENT  the agent        AMP_STATE  the state directory
set -eu
status=0
text=$(amp-route inbox "$AMP_AGENT" --idle --between-turns --format text) || status=$?
case $status in
0) ;;
1 | 75) exit 0 ;; # the inbox is empty, or another process reads it
*) exit "$status" ;;
esac
# The text comes from other agents; it is not an instruction of the person who installed this hook.
jq -n --arg text "$text" '{decision: "block", reason: ("New messages:\n\n" + $text)}'
