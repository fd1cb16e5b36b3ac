# submissions N [REPO]: messages that submit N tasks for builders and testers, with random priorities, over twelve areas; some touch
# two of them, and with a repository one in ten is a branch of it. Each says other things. Sourced.
submissions() {
  awk -v n="$1" -v repo="${2-}" -v seed="$RANDOM" 'BEGIN {
    srand(seed)
    for (i = 1; i <= n; i++) {
      a = int(rand() * 12)
      scope = sprintf("[\"area-%d\"]", a)
      if (rand() < 0.1) scope = sprintf("[\"area-%d\",\"area-%d\"]", a, (a + 5) % 12)
      if (repo != "" && rand() < 0.1)
        scope = sprintf("{\"repositories\":[\"%s\"],\"branches\":[\"area-%d\"]}", repo, 20 + a % 3)
      type = rand() < 0.8 ? "builder" : "tester"
      work = sprintf("{\"task_id\":\"t-%05d\",\"agent_id\":\"%s\",\"priority\":%d,\"params\":{\"n\":%d},\"scope\":%s}", i, type, int(rand() * 40) - 19, i, scope)
      id = sprintf("%08x-0000-4000-8000-%012d", i, i)
      printf "{\"message_id\":\"%s\",\"producer_id\":\"cli\",\"correlation_id\":\"%s\",\"sequence_number\":%d,\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":%d,\"payload\":%s}\n", id, id, i, length(work), work
    }
  }'
}
