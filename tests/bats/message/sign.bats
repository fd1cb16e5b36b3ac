#!/usr/bin/env bats
# amp-sign: signed lines, trust, rotation, revocation; and that node's crypto agrees.

load ../lib
load ../messages

setup() {
  need_tool amp-sign
  need ssh-keygen
  cd "$BATS_TEST_TMPDIR" || return 1
  export AMP_STATE=$PWD/state
  message task_dispatch >dispatch # from admin
  message task_result >result     # from executor
}

# refused CODE COMMAND...: one line is refused with this code, and nothing is written.
refused() {
  local code=$1
  shift
  run -1 --separate-stderr "$@"
  [ -z "$output" ]
  [[ "$stderr" == *": $code: "* ]]
}

@test "a signed line passes byte for byte, unwrapped it is the message" {
  cat dispatch result >in
  from=$(jq -r .from dispatch)
  amp-sign --as "$from" <dispatch >signed
  amp-sign --as executor/ann <result >>signed
  [ "$(wc -l <signed)" -eq 2 ]
  amp-sign verify <signed | cmp - signed
  amp-sign verify --unwrap <signed | cmp - in
  jq -e '.sig | keys == ["alg", "key", "time", "value"]' signed >/dev/null
  # The recipient beside the message is kept; it is not signed.
  jq -c . >message <<'JSON'
{"message_id":"550e8400-e29b-41d4-a716-446655440000","idempotency_token":"a:b:1","producer_id":"ann",
"correlation_id":"550e8400-e29b-41d4-a716-446655440001","sequence_number":1,"retry_count":0,"message_type":"DATA",
"content_type":"application/json","content_length":6,"payload":"e30=","hlc_timestamp":"1:0:a","ttl_ms":1000}
JSON
  printf '{"to":"bob","msg":%s}\n' "$(<message)" >addressed
  amp-sign --as ann <addressed >signed
  amp-sign verify --unwrap <signed | cmp - addressed
  sed 's/"to":"bob"/"to":"eve"/' signed | amp-sign verify >/dev/null
}

@test "operators of identity.operators speak for the admin" {
  message decision >decision
  amp-sign --as lead/kim <decision >signed
  refused bad_sender amp-sign verify <signed
  echo '{"identity":{"operators":["lead/joe","lead"]}}' >amp.json
  chmod 600 amp.json
  amp-sign verify -c amp.json <signed | cmp - signed
  echo '{"identity":{"operators":["lead/joe"]}}' >amp.json
  refused bad_sender amp-sign verify -c amp.json <signed
  # They speak for nobody else.
  echo '{"identity":{"operators":["lead"]}}' >amp.json
  amp-sign --as lead/kim <dispatch >signed
  refused bad_sender amp-sign verify -c amp.json <signed
}

@test "every reason for a refusal has its code, and is in the error log" {
  amp-sign --as executor/ann <result >signed
  sed 's/"msg":{/"msg":{ /' signed >spaced
  refused bad_signature amp-sign verify <spaced
  sed -E 's/("value":")A/\1B/; t; s/("value":")./\1A/' signed >changed
  run -1 cmp -s signed changed
  refused bad_signature amp-sign verify <changed
  refused unsigned amp-sign verify <result
  amp-sign verify --allow-unsigned <result | cmp - result
  amp-sign --as reviewer/eve <result >other
  refused bad_sender amp-sign verify <other
  amp-sign keygen stranger >/dev/null
  amp-sign --key stranger <result >unknown
  refused unknown_key amp-sign verify <unknown
  amp-sign trust add --allowed-signers signers executor stranger.pub --valid-before -1h
  refused key_expired amp-sign verify --allowed-signers signers <unknown
  amp-sign trust remove --allowed-signers signers stranger.pub
  amp-sign trust add --allowed-signers signers executor stranger.pub --namespaces git
  refused unknown_key amp-sign verify --allowed-signers signers <unknown
  refused bad_signature_time amp-sign verify --max-age 1ms <signed
  printf '{"sig":{"key":"x"},"msg":%s}\n' "$(<result)" >half
  refused bad_signature amp-sign verify <half
  for code in bad_signature unsigned bad_sender unknown_key key_expired bad_signature_time; do
    jq -se --arg c "$code" 'any(.code == $c and .tool == "amp-sign" and .severity == "error")' state/error.ndjson >/dev/null
  done
  # The stream goes on after a refusal.
  cat other signed unknown signed >all
  run -1 --separate-stderr amp-sign verify <all
  [ "${#lines[@]}" -eq 2 ]
}

@test "lines that are signed already pass, are signed again or are refused" {
  amp-sign --as executor/ann <result >signed
  amp-sign --as executor/bob <signed | cmp - signed
  amp-sign --as executor/bob --signed replace <signed >again
  run -1 cmp -s signed again
  [ "$(jq -c .msg again)" = "$(jq -c .msg signed)" ]
  amp-sign verify <again >/dev/null
  refused already_signed amp-sign --as executor/bob --signed refuse <signed
  # Also with spaces, or with a signature that is malformed.
  jq . <signed | tr '\n' ' ' >spaced
  amp-sign --as executor/bob <spaced | cmp - <(cat spaced && echo)
  refused already_signed amp-sign --as executor/bob --signed refuse <<<'{"sig":1,"msg":{}}'
  echo 'not JSON' >bad
  refused invalid_json amp-sign --as executor/bob <bad
}

@test "a rotated key is valid for the grace period, and a revoked one until the revocation" {
  amp-sign --as executor/ann <result >old
  amp-sign rotate executor/ann --grace 1h >fresh
  amp-sign --as executor/ann <result >new
  amp-sign verify <old >/dev/null
  amp-sign verify <new >/dev/null
  [ "$(jq -r .sig.key new)" = "$(cut -d ' ' -f 2 fresh)" ]
  [ "$(jq -r .sig.key old)" != "$(jq -r .sig.key new)" ]
  amp-sign revoke "$(jq -r .sig.key new)" --from 2099-01-01T00:00:00Z --reason "will be lost"
  amp-sign verify <new >/dev/null
  amp-sign revoke "$(jq -r .sig.key new)" --from -1h
  refused key_revoked amp-sign verify <new
  amp-sign rotate executor/ann --grace 0 >/dev/null
  amp-sign --as executor/ann <result | amp-sign verify >/dev/null
  [ "$(amp-sign trust list --json | jq -r .status | sort | uniq -c | tr -s ' \n' ' ')" = " 1 revoked 2 valid " ]
  [ "$(jq -r 'select(.severity == "warning").code' state/error.ndjson | sort | uniq -c | tr -s ' \n' ' ')" = \
    " 2 key_revocation 2 key_rotated " ]
  run -1 amp-sign rotate executor/nobody
}

@test "a key from outside: an SSH key with its line in a file, which git reads too" {
  need git
  ssh-keygen -q -t ed25519 -N '' -f key
  from=$(jq -r .from dispatch)
  amp-sign trust add --allowed-signers signers "$from,ann@example.org" key.pub --comment "ann's key"
  amp-sign trust add --allowed-signers signers "$from,ann@example.org" key.pub --comment "ann's new key"
  [ "$(wc -l <signers)" -eq 1 ]
  amp-sign --key key <dispatch | amp-sign verify --allowed-signers signers >/dev/null
  git init -q repo
  git -C repo -c gpg.format=ssh -c user.signingKey="$PWD/key" commit -q --allow-empty -S -m first
  git -C repo -c gpg.ssh.allowedSignersFile="$PWD/signers" verify-commit HEAD
  amp-sign revoke key.pub --allowed-signers signers --from 2020-01-01T00:00:00Z
  run -1 git -C repo -c gpg.ssh.allowedSignersFile="$PWD/signers" verify-commit HEAD
  run -1 amp-sign trust remove --allowed-signers signers key.pub --principals nobody
  amp-sign trust remove --allowed-signers signers key.pub
  [ ! -s signers ]
  run -78 amp-sign verify --allowed-signers missing <dispatch
}

@test "keys of a state: made once, only for us" {
  for i in 1 2 3 4; do
    amp-sign --as executor/ann <result >signed.$i &
  done
  wait
  [ "$(cat signed.* | jq -r .sig.key | sort -u | wc -l)" -eq 1 ]
  [ "$(wc -l <state/keys/allowed_signers)" -eq 1 ]
  [ "$(stat -c %a state/keys state/keys/executor.ann)" = $'700\n600' ]
  run -73 amp-sign keygen --as executor/ann
  chmod 640 state/keys/executor.ann
  run -77 amp-sign --as executor/ann <result
  chmod 600 state/keys/executor.ann
  chmod 755 state/keys
  run -77 amp-sign --as executor/ann <result
  run -64 amp-sign --as ../ann <result
  run -64 amp-sign <result
  run -64 amp-sign --as a --key b <result
}

# Both sides of node: the signature of a line over what SSHSIG signs, without any of our code.
@test "node's crypto verifies our lines, and we verify its" {
  need node
  amp-sign keygen key >/dev/null
  amp-sign trust add --allowed-signers signers executor key.pub
  cat >line.mjs <<'JS'
import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { readFileSync } from "node:fs";
const [what, file, line] = process.argv.slice(2);
const string = (b) => Buffer.concat([Buffer.from([0, 0, b.length >> 8, b.length & 255]), Buffer.from(b)]);
const data = (key, time, msg) => {
  const digest = createHash("sha512").update(`amp-message-v1\n${key}\n${time}\n${msg}`).digest();
  return Buffer.concat([Buffer.from("SSHSIG"), string("amp"), string(""), string("sha512"), string(digest)]);
};
// The secret is the last but one part of OpenSSH's file: 64 bytes, the seed first.
const seed = () => {
  const raw = Buffer.from(readFileSync(file, "utf8").replace(/-----.*-----/g, ""), "base64");
  return raw.subarray(raw.indexOf(Buffer.from([0, 0, 0, 64])) + 4).subarray(0, 32);
};
const blob = Buffer.from(readFileSync(file + ".pub", "utf8").split(" ")[1], "base64");
const fingerprint = "SHA256:" + createHash("sha256").update(blob).digest("base64").replace(/=+$/, "");
const text = readFileSync(line, "utf8").trimEnd();
if (what === "verify") {
  const { sig } = JSON.parse(text);
  const msg = text.slice(text.indexOf('"msg":') + 6, -1);
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), blob.subarray(-32)]);
  const key = createPublicKey({ key: spki, format: "der", type: "spki" });
  const good = sig.key === fingerprint && verify(null, data(sig.key, sig.time, msg), key, Buffer.from(sig.value, "base64"));
  process.exit(good ? 0 : 1);
}
const pkcs8 = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed()]);
const key = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
const time = new Date().toISOString();
const value = sign(null, data(fingerprint, time, text), key).toString("base64");
console.log(`{"sig":{"key":"${fingerprint}","alg":"Ed25519","time":"${time}","value":"${value}"},"msg":${text}}`);
JS
  amp-sign --key key <result >signed
  node line.mjs verify key signed
  sed 's/executor/Executor/' signed >changed
  run -1 node line.mjs verify key changed
  node line.mjs sign key result >theirs
  amp-sign verify --allowed-signers signers <theirs | cmp - theirs
  sed 's/"msg":{/"msg":{ /' theirs >changed
  refused bad_signature amp-sign verify --allowed-signers signers <changed
}
