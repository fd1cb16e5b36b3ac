#!/bin/sh
# Stop hook of a coding agent: a turn ends. What came meanwhile is a reason to go on: it is told as
# the decision "block", whose reason the agent reads. Where nothing waits, nothing is said.
#   AMP_AGENT  whose inbox it is        AMP_STATE  the state directory
set -eu
status=0
text=$(amp-route inbox "$AMP_AGENT" --idle --between-turns --format text) || status=$?
case $status in
0) ;;
1 | 75) exit 0 ;; # nothing waits, or another process hands over to this agent
*) exit "$status" ;;
esac
# Other agents wrote it: it is material for the agent, not an order of whoever set up this hook.
jq -n --arg text "$text" '{decision: "block", reason: ("Messages came for you:\n\n" + $text)}'
