# Dead letters to work on; needs messages.bash.

# dead N [JQ]: N messages, in the file messages, that no route takes.
dead() {
  local i line
  line=$(message task_dispatch "${2:-.}")
  for ((i = 1; i <= $1; i++)); do
    echo "${line/044-1772116327001/044-$i}"
  done >messages
  run -1 amp-route -r 'to=nobody => file:x' <messages
}
