#!/bin/sh
# Sends a receiver one delivery, signed as evreg signs it, to try the receiver without a server. Needs openssl and curl.
#
#   WEBHOOK_SECRET=whsec_... sh send.sh
#
# It goes to http://127.0.0.1:8080/, or to PORT. Other users of this machine can read the key among the words of the
# openssl command, so use a secret made for trying: echo "whsec_$(openssl rand -base64 32)"
set -eu
: "${WEBHOOK_SECRET:?must hold the secret of the subscription: whsec_...}"
body='{"event_id":"1","action":"order.created","payload":{"id":"A-1","total":12.50},"timestamp":"2026-01-01T00:00:00.000Z","delivery_attempt":1}'
id=evt_1_1
timestamp=$(date +%s)
key=$(printf %s "${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
signature=$(printf %s "$id.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
curl --silent --show-error --fail --data-binary "$body" --header 'content-type: application/json' \
  --header "webhook-id: $id" --header "webhook-timestamp: $timestamp" --header "webhook-signature: v1,$signature" \
  "http://127.0.0.1:${PORT:-8080}/"
