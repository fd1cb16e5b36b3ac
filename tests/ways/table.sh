#!/bin/sh
# Prints the table of docs/guard.md from ways.tsv.
cd "$(dirname "$0")" || exit 1
echo '| way | stopped by | trip-wire | server |'
echo '|---|---|---|---|'
grep -v '^#' ways.tsv | awk -F '\t' '{
  here = $2 == "-" ? "**not here**" : $2
  server = $4 == "-" ? "" : $4
  printf "| %s | %s | %s | %s |\n", $1, here, $3 == "-" ? "" : $3, server
}'
