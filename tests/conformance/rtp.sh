# shellcheck shell=bash disable=SC2154
# Sample cases of the Runtime Protocol: see protocols.sh.

rtp_case() {
  later "so far its envelope is checked, no more"
}
