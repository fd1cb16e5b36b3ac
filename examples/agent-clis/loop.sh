#!/bin/bash
# The QA loop with coding agents: Claude Code executes, Codex reviews.
#   loop.sh STATE <tasks.ndjson
# Both command lines must be installed and logged in. Their options follow --; see
# amp-agent-contract(7). agent-claude --help prints the options of the adapter.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${AMP_LIBEXEC:=$(dirname "$(dirname "$(readlink -f "$(command -v task-dispatch)")")")/libexec/amp}"
export EXECUTOR=$AMP_LIBEXEC/agent-claude REVIEWER=$AMP_LIBEXEC/agent-codex
exec "$here/../qa-loop/loop.sh" "$@"
