# How much longer everything takes because of what else the machine does. To be sourced: a limit of a test grows with it.
#
#   busy              sets $busy: percent of the time on an idle machine, 100 or more
#   patient SECONDS   prints the limit in seconds (an integer), multiplied by that

busy=100
export busy_processors=${busy_processors:-$(nproc)}

# The larger of two measures counts: the load average is late, and the number of running processes is of one moment.
# TEST_SLOW multiplies both, for programs that are slow by themselves (valgrind).
busy() {
  local load running
  read -r load _ _ running _ </proc/loadavg || return 0
  load=$((10#${load/./})) running=$((100 * ${running%%/*}))
  busy=$(((load > running ? load : running) / busy_processors))
  busy=$(((busy > 100 ? busy : 100) * ${TEST_SLOW:-1}))
}

patient() {
  busy
  echo $(($1 * busy / 100))
}
