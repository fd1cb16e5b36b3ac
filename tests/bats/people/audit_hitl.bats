#!/usr/bin/env bats
# hitl-prompt audit: who decided what, with which key, through which channel.

setup() {
  load ../lib
  load ../agents
  need jq python3
  need_tool hitl-prompt
  workplace
  unset AMP_IDENTITY # answers are signed
  ME=$(id -un)
}

# One state with a question, a refused, an accepted and a late answer, and a suspension.
past() {
  export AMP_CONFIG=$BATS_TEST_TMPDIR/amp.json AMP_STATE=$STATE
  echo '{}' >"$AMP_CONFIG"
  : >none
  escalation >asked.ndjson
  run -1 hitl-prompt --trust-in asked.ndjson --answer none
  ID=$(jq -r .msg_id asked.ndjson)
  echo '{"hitl":{"operators":["somebody"]}}' >"$AMP_CONFIG"
  run -77 hitl-prompt answer "$ID" resume
  echo '{}' >"$AMP_CONFIG"
  hitl-prompt answer --print "$ID" resume 'because <b>"it'\''s" & done</b>' >decision.ndjson
  run -1 hitl-prompt answer "$ID" terminate
  hitl-prompt suspend --all --reason '<script>alert(1)</script>'
  hitl-prompt resume --all
}

@test "every step is listed, with who, how, through what, why and what changed; filters select" {
  past
  hitl-prompt audit --json >all.ndjson
  [ "$(jq -r .what all.ndjson | paste -sd' ')" = "asked unanswered rejected decided rejected suspended resumed" ]
  key=$(jq -r 'select(.msg.type == "decision").sig.key' decision.ndjson)
  got all.ndjson ".what == \"decided\" and .operator == \"$ME\" and .by == \"login\" and .channel == \"command\" and .key == \"$key\""
  got all.ndjson '.what == "decided" and .decision == "resume" and .task == "T-2026-001" and .type == "hallucination_lock"
    and .changed == "the decision was sent" and .frame > 0'
  got all.ndjson '.code == "not_operator" and .what == "rejected" and .channel == "command"'
  got all.ndjson '.what == "suspended" and .changed == "suspended: all" and .by == "login"'
  [ "$(hitl-prompt audit --json --decision resume | jq -r .what)" = decided ]
  [ "$(hitl-prompt audit --json --what suspended --what resumed | jq -r .what | paste -sd' ')" = "suspended resumed" ]
  [ "$(hitl-prompt audit --json --channel command --person "$ME" | wc -l)" = 5 ]
  [ -z "$(hitl-prompt audit --json --person nobody)" ]
  [ -z "$(hitl-prompt audit --json --since 2999-01-01T00:00:00Z)" ]
  [ "$(hitl-prompt audit --json --task T-2026-001 | wc -l)" = 3 ]
  hitl-prompt audit >table
  grep -q "^TIME .*KNOWN BY" table
  run -64 hitl-prompt audit --since yesterday
  run -69 hitl-prompt audit --state "$BATS_TEST_TMPDIR/nothing"
}

@test "verify: an honest trail is intact; a changed log and a signature by another key are found" {
  past
  hitl-prompt audit --verify --json >all.ndjson 2>err
  grep -q "The log is intact" err
  [ "$(jq -r 'select(.what == "decided").signature' all.ndjson)" = valid ]
  [ "$(jq -r 'select(.what == "suspended" or .what == "resumed").signature' all.ndjson | paste -sd' ')" = "valid valid" ]
  jq -es 'map(select(.key)) | map(.key) | unique | length == 1' all.ndjson
  # The operator's key is revoked from the beginning of time on: the decision was not the operator's.
  key=$(jq -r 'select(.what == "decided").key' all.ndjson)
  amp-sign revoke --state "$STATE" --from 2020-01-01T00:00:00Z "$key"
  run -1 --separate-stderr hitl-prompt audit --verify --json
  [ "$(jq -r 'select(.what == "decided").signature' <<<"$output")" = key_revoked ]
  [ "$(jq -r 'select(.what == "suspended").signature' <<<"$output")" = key_revoked ]
  grep -q "3 signatures are not valid" <<<"$stderr"
  # Somebody edits the reason in the log.
  sed -i 's/"note":"because/"note":"Because/' "$STATE"/log/0*.ndjson
  run -74 --separate-stderr hitl-prompt audit --verify --json
  grep -q "log_damaged\|damaged\|checksum" <<<"$stderr"
}

@test "the report is one well-formed file without scripts and outside resources" {
  past
  hitl-prompt audit --verify --json | jq -nrf "$AMP_TOP/share/draw/decisions.jq" >report.html
  python3 - report.html <<'EOS'
import sys
from html.parser import HTMLParser

class Report(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], set(), set(), []
    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes |= {name for name, value in attributes}
        if tag != "meta":
            self.open.append(tag)
    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag
    def handle_data(self, data):
        self.text.append(data)

r = Report()
r.feed(open(sys.argv[1], encoding="utf-8").read())
r.close()
assert r.open == [], r.open
assert r.tags <= set("html head meta title style body h1 p div table caption thead tbody tr th td".split()), r.tags
assert r.attributes <= set("lang charset http-equiv content name class scope".split()), r.attributes
text = "".join(r.text)
assert "<script>alert(1)</script>" in text
assert "because <b>\"it's\" & done</b>" in text
assert "The log is intact" in text and "not_operator" in text
assert "://" not in text and "url(" not in text and "@import" not in text
EOS
}
