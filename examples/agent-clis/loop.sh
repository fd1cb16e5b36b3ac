#!/bin/bash
# The QA loop with coding agents: Claude Code executes, Codex reviews.
#   loop.sh STATE <tasks.ndjson
# Both command lines must be installed and logged in. Their options follow --; see
# amp-agent-contract(7). agent-claude --help prints the options of the adapter.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${AMP_LIBEXEC:=$(dirname "$(dirname "$(readlink -f "$(command -v task-dispatch)")")")/libexec/amp}"
# Each agent reaches its vendor's API and its own settings, and nothing else.
if [ -z "${POLICY-}" ]; then
  export EXECUTOR_POLICY=$here/../policies/claude.json REVIEWER_POLICY=$here/../policies/codex.json
fi
export EXECUTOR=$AMP_LIBEXEC/agent-claude REVIEWER=$AMP_LIBEXEC/agent-codex
exec "$here/../qa-loop/loop.sh" "$@"
