# Pools and agents that are killed and stopped at random (tests/chaos/pool): each job is done exactly once, in order, and
# no two jobs at work have a common scope. CHAOS_JOBS=1000 runs it at length.

setup() {
  load lib
  need jq flock
}

@test "jobs are done exactly once, in order, and alone in their scope, whoever is killed or stopped" {
  DIR=$BATS_TEST_TMPDIR/chaos SEED=${SEED:-7} "$AMP_TOP/tests/chaos/pool" "${CHAOS_JOBS:-40}" 900
}
