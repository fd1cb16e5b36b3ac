# What a state's log, and what came out, have to say of deliveries whatever was killed.

# frames LOG...: key, event, from, to and a cursor's position, tab-separated.
frames() {
  jq -rR 'fromjson? | select(.key) | [.key, .event, .from, .to, (.state.last_seq // 0)] | @tsv' "$@"
}

# fine: the frames on stdin. READ once, nothing offered after it, and nothing else before it; FULFILLED once;
# the cursor of mbp over vps goes on by one.
fine() {
  awk -F'\t' '
    function wrong(what) { print what ": " $0; bad = 1 }
    $1 ~ /^inbox\./ {
      agent = $1
      sub(/\.[^.]*$/, "", agent)
      if (read[$1] && ($2 == "offer" || ($2 == "read" && $4 == "READ"))) wrong("again")
      if ($2 == "offer" && under[agent] && under[agent] != $1) wrong("not READ is " under[agent])
      if ($2 == "offer") under[agent] = $1
      else if (under[agent] == $1 && $4 != "OFFERED") under[agent] = ""
      if ($2 == "read") read[$1] = 1
    }
    $1 ~ /^message\./ && $4 == "FULFILLED" && $3 != "FULFILLED" && done[$1]++ { wrong("fulfilled twice") }
    $1 == "cursor.mbp.vps" && $5 != last + 0 && $5 != last + 1 { wrong("a gap behind " last) }
    $1 == "cursor.mbp.vps" { last = $5 }
    END { exit bad }'
}

# one_end LOG...: an operation has one end, however many attempts.
one_end() {
  jq -rR 'fromjson? | select(.key // "" | startswith("message.")) | select(.to == "FULFILLED" and .from != "FULFILLED") |
    .state.claim | values | tojson' "$@" | sort | uniq -d | awk '{ print "two ends: " $0 } END { exit NR > 0 }'
}

# whole FILE...: their whole lines. Half a line that a killed writer left at the end of one file is not joined with the first
# line of the next, which would hide that.
whole() {
  awk '/}$/' "$@"
}

# all_reached EXPECTED REACHED: names, one a line.
all_reached() {
  sort -u "$1" | comm -23 - <(sort -u "$2") | awk '{ print "lost: " $0 } END { exit NR > 0 }'
}

# no_oftener REACHED FRAMES: none came more often than it was offered.
no_oftener() {
  awk -F'\t' 'NR == FNR { if ($1 ~ /^inbox\./ && $2 == "offer") { sub(/.*\./, "", $1); n[$1]++ }; next }
    { came[$1]++ }
    END { for (i in came) if (came[i] > n[i]) { print "too often: " i; bad = 1 } exit bad }' "$2" "$1"
}
