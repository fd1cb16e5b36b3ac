# Whether every negotiation of SW4RM, and every conversation of the Runtime Protocol, kept its order on
# the way from the lines of $1 to those of $2, which may lack some.
order_kept() {
    jq -n -e --slurpfile in "$1" --slurpfile out "$2" '
        def bare: .msg // .;
        def bound: bare | .message_type == "NEGOTIATION" or (has("eventId") and has("corrId"));
        def key: bare | .correlation_id // .corrId;
        def id: bare | .message_id // .eventId;
        ($in | to_entries | map({(.value | id): .key}) | add) as $place
        | [$out[] | select(bound)] | length > 0
          and (group_by(key) | all(map($place[id]) | . == sort and all(. != null)))'
}
