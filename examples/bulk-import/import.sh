#!/bin/sh
# Publishes an order.created event for each line of a file of orders (NDJSON: one JSON object a line).
#
#   sh import.sh orders.ndjson
#
# Needs evreg on the PATH, and the server: EVREG_URL and EVREG_TOKEN, or a server on this machine with EVREG_DATA.
# Whatever ends it (Ctrl-C, a crash, a server that is down): run the same command again. It stores no line twice, also
# where refused lines were corrected, or lines added behind the others. Each file of orders needs a name of its own.
#
# Exit code 0: all lines are published. 7: all lines were read, and some refused: their numbers and the reasons are printed, those
# of all with --json. 130: interrupted. evreg's docs/command-line.md has the others.
set -eu
orders=${1:?must be the file of orders: sh import.sh orders.ndjson}

# The bytes of each order stay as they are. The name of the file and the number of the line are the key of each event.
LC_ALL=C sed '/./s/.*/{"action":"order.created","payload":&}/' "$orders" > "$orders.events"
exec evreg publish --batch "$orders.events" --idempotency-key "import:$(basename "$orders")"
