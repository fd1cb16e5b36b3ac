# slow
# Our schema checker and ajv agree.

load ../lib

@test "our verdicts are those of ajv" {
  run env -u NODE_PATH BUILD_DIR="$AMP_BUILD" "$AMP_TOP/tests/differential/run"
  echo "$output"
  [[ "${lines[-1]}" != *" skipped" ]] || skip "${lines[0]}"
  [ "$status" -eq 0 ]
  [[ "${lines[-1]}" =~ ^[0-9]+\ passed,\ 0\ failed$ ]]
  [ "${lines[-1]%% *}" -gt 20000 ]
}
