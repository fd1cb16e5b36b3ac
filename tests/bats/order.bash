# Whether every conversation kept its order on the way from the lines of $1 to those of $2, which may
# lack some: for each correlation the ids of $2 are a subsequence of those of $1.
order_kept() {
    jq -n -e --slurpfile in "$1" --slurpfile out "$2" '
        def key: .msg // . | .correlation_id // .corrId;
        def id: .msg // . | .message_id // .eventId;
        ($in | to_entries | map({(.value | id): .key}) | add) as $place
        | $out | group_by(key) | all(map($place[id]) | . == sort and all(. != null))'
}
