#!/usr/bin/env bash
# Signing and verifying a message: this library, in process and as amp-sign; node's crypto in process over the same
# bytes; ssh-keygen -Y, a process for each message. Medians of 9 rounds; ratios to the library.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build}
export PATH=$PWD/$build/bin:$PATH
unset AMP_STATE AMP_AGENT AMP_IDENTITY
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc=${CC:-cc}
"$cc" -O2 -o "$work/corpus" bench/corpus*.c
"$cc" -O2 -Iinclude -Ilib -D_GNU_SOURCE -o "$work/identity" bench/identity.c "$build/lib/libamp.a" -lsodium -lpcre2-8
{ "$work/corpus" task_result 8 || true; } | head -n 4000 >"$work/lines"
n=$(wc -l <"$work/lines")

row() { # name, signing, verifying (us), the library's two
  awk -v n="$1" -v s="$2" -v v="$3" -v ls="$sign" -v lv="$verify" \
    'BEGIN { printf "%-44s %9.1f us %7.2f x   %9.1f us %7.2f x\n", n, s, s / ls, v, v / lv }'
}
read -r sign verify _ bytes < <("$work/identity" "$work/lines" "$work/signers")
echo "$n messages, $bytes bytes each on average"
printf '%-44s %-22s   %s\n' "" "sign" "verify"
row "lib/message/identity, Ed25519" "$sign" "$verify"

# median COMMAND...: microseconds for each message, of 5 runs of the filter over all of them.
median() {
  local i t0 t1
  for ((i = 0; i < 5; i++)); do
    t0=$(date +%s%N)
    "$@" >"$work/out"
    t1=$(date +%s%N)
    echo $(((t1 - t0) / n))
  done | sort -n | awk 'NR == 3 { printf "%.1f\n", $1 / 1000 }'
}
amp-sign keygen "$work/key" >/dev/null
amp-sign trust add --allowed-signers "$work/trusted" 'executor' "$work/key.pub"
sign_filter() { amp-sign --key "$work/key" <"$work/lines"; }
verify_filter() { amp-sign verify --allowed-signers "$work/trusted" <"$work/signed"; }
sign_filter >"$work/signed"
row "amp-sign, amp-sign verify (wall time)" "$(median sign_filter)" "$(median verify_filter)"

if command -v node >/dev/null; then
  cat >"$work/peer.mjs" <<'JS'
import { createHash, generateKeyPairSync, sign, verify } from "node:crypto";
import { readFileSync } from "node:fs";
const lines = readFileSync(process.argv[2], "utf8").trimEnd().split("\n");
const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const string = (b) => Buffer.concat([Buffer.from([0, 0, b.length >> 8, b.length & 255]), Buffer.from(b)]);
const head = Buffer.concat([Buffer.from("SSHSIG"), string("amp"), string(""), string("sha512")]);
const data = (time, line) =>
  Buffer.concat([head, string(createHash("sha512").update(`amp-message-v1\nkey\n${time}\n`).update(line).digest())]);
const signing = [], verifying = [];
for (let round = 0; round < 9; round++) {
  const time = new Date().toISOString();
  let t = process.hrtime.bigint();
  const values = lines.map((l) => sign(null, data(time, l), privateKey));
  signing.push(Number(process.hrtime.bigint() - t) / 1e3 / lines.length);
  t = process.hrtime.bigint();
  if (!lines.every((l, i) => verify(null, data(time, l), publicKey, values[i]))) process.exit(1);
  verifying.push(Number(process.hrtime.bigint() - t) / 1e3 / lines.length);
}
const median = (a) => a.sort((x, y) => x - y)[4].toFixed(1);
console.log(median(signing), median(verifying));
JS
  read -r s v < <(node "$work/peer.mjs" "$work/lines")
  row "node's crypto, Ed25519" "$s" "$v"
else
  echo "node's crypto: node is not installed"
fi

head -n 1 "$work/lines" >"$work/one"
echo "bench namespaces=\"amp\" $(cat "$work/key.pub")" >"$work/allowed"
each() { # COMMAND...: microseconds for one process, of 200
  local i t0 t1
  t0=$(date +%s%N)
  for ((i = 0; i < 200; i++)); do "$@" <"$work/one" >"$work/sig" 2>/dev/null; done
  t1=$(date +%s%N)
  awk -v t=$((t1 - t0)) 'BEGIN { printf "%.1f\n", t / 200 / 1000 }'
}
s=$(each ssh-keygen -q -Y sign -f "$work/key" -n amp)
cp "$work/sig" "$work/value"
row "ssh-keygen -Y sign, verify (a process each)" "$s" \
  "$(each ssh-keygen -Y verify -f "$work/allowed" -I bench -n amp -s "$work/value")"

# ECDSA P-256 and RSA, verified by key-worker.
for type in "ecdsa -b 256" "rsa -b 3072"; do
  # shellcheck disable=SC2086 # the type with its option
  ssh-keygen -q -t $type -N '' -f "$work/${type%% *}"
  amp-sign trust add --allowed-signers "$work/trusted" 'executor' "$work/${type%% *}.pub"
  n=20
  head -n $n "$work/lines" | amp-sign --key "$work/${type%% *}" >"$work/signed"
  yes "$(cat "$work/signed")" | head -n 400 >"$work/many" || true
  mv "$work/many" "$work/signed"
  n=400
  row "amp-sign verify, ${type%% *} (key-worker)" 0 "$(median verify_filter)"
done
