#!/usr/bin/env bats
# What a new user does first, as tests/five-minutes/run times it on a bare Debian; here with the programs of the build.
# walls

load ../lib

# Once for all tests.
setup_file() {
  load ../lib
  command -v script >/dev/null && command -v gcc >/dev/null || return 0
  unset AMP_IDENTITY AMP_CONFINE AMP_STATE
  status=0
  timeout 120 "$AMP_TOP/tests/five-minutes/run" --fast >"$BATS_FILE_TMPDIR/out" 2>&1 </dev/null || status=$?
  echo "$status" >"$BATS_FILE_TMPDIR/status"
}

@test "init, the loop, a rejection, a question that is answered, and landed" {
  need_tool task-dispatch amp-ack amp-route hitl-prompt worktree-bind
  need script jq make gcc
  run cat "$BATS_FILE_TMPDIR/out"
  [ "$(cat "$BATS_FILE_TMPDIR/status")" -eq 0 ]
  [[ $output == *"create   loop.sh"*"rejected, 1 issue"*"> yes looks right"*"resume by "*"ok - 1h30m is 5400 seconds"* ]]
  echo "# ${lines[-1]}" >&3
}

@test "the session in the README is the one that runs" {
  need script jq make gcc
  local line n=0
  # Without times, ids and the user.
  plain() { sed -E 's/^[0-9:]{8}  //; s/-[0-9]{20,}/-N/g; s/[0-9a-f]{12}/COMMIT/g; s/[0-9]{4}-[0-9]{3}/ID/g; s/ by [a-z]+$/ by USER/; s,operator/[a-z]+,operator/USER,; s/…$//'; }
  plain <"$BATS_FILE_TMPDIR/out" >"$BATS_TEST_TMPDIR/real"
  while IFS= read -r line; do
    case $line in '$ '* | Proceed* | '```' | …) continue ;; esac
    grep -qF -- "$line" "$BATS_TEST_TMPDIR/real" || { echo "not printed: $line" && return 1; }
    n=$((n + 1))
  done < <(sed -n '/^## Your own agents/,/^## The tools/p' "$AMP_TOP/README.md" | sed -n '/^```/,/^```/p' | plain)
  [ "$n" -ge 30 ]
}
