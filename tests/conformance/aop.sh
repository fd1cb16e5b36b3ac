# shellcheck shell=bash disable=SC2154
# Sample cases of AOP: see protocols.sh.

aop_case() {
  later "so far its envelope is checked, no more"
}
