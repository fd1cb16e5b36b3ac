# submissions N: messages that submit N tasks with random priorities, over twelve areas; each says other things. Sourced.
submissions() {
  awk -v n="$1" -v seed="$RANDOM" 'BEGIN {
    srand(seed)
    for (i = 1; i <= n; i++) {
      work = sprintf("{\"task_id\":\"t-%05d\",\"agent_id\":\"builder\",\"priority\":%d,\"params\":{\"n\":%d},\"scope\":\"area-%d\"}", i, int(rand() * 40) - 19, i, int(rand() * 12))
      id = sprintf("%08x-0000-4000-8000-%012d", i, i)
      printf "{\"message_id\":\"%s\",\"producer_id\":\"cli\",\"correlation_id\":\"%s\",\"sequence_number\":%d,\"retry_count\":0,\"message_type\":\"DATA\",\"content_type\":\"application/json\",\"content_length\":%d,\"payload\":%s}\n", id, id, i, length(work), work
    }
  }'
}
