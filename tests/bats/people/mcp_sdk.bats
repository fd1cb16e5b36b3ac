# slow
# amp-mcp and the clients of the official SDK.

load ../lib

@test "the SDK's clients use every tool and resource" {
  run env -u NODE_PATH BUILD_DIR="$AMP_BUILD" "$AMP_TOP/tests/mcp/run"
  echo "$output"
  [[ "${lines[-1]}" != *", 1 skipped" ]] || skip "${lines[0]}"
  [ "$status" -eq 0 ]
  [ "${lines[-1]}" = "14 passed, 0 failed, 0 skipped" ]
}
