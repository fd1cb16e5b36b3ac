#!/bin/sh
# A CGI program: answers to the questions of one state directory.
AMP_STATE=${AMP_STATE:-$HOME/state}
AMP_CONFIG=${AMP_CONFIG:-$HOME/.config/amp/amp.json}
export AMP_STATE AMP_CONFIG
exec hitl-prompt receive
