#!/bin/sh
# Receives webhooks of evreg: one request on stdin, its answer on stdout. Needs openssl and what every Unix has.
# Something starts it for each connection; put your HTTPS proxy in front of that:
#
#   export WEBHOOK_SECRET=whsec_...
#   socat TCP-LISTEN:8080,bind=127.0.0.1,reuseaddr,fork EXEC:"sh receiver.sh"
#   systemd-socket-activate --listen 127.0.0.1:8080 --accept --inetd -E WEBHOOK_SECRET sh receiver.sh
#
# Each event is stored once, as <event_id>.json in the folder "inbox" or INBOX, before the request is answered. The work
# is done later, once for each event, by a second command, for example each minute by cron:
#
#   sh receiver.sh handle
set -eu
umask 077
inbox=${INBOX:-inbox}
max_bytes=2097152
tolerance_seconds=300

# Your work, with the file of the event. If it fails, it runs again for that event the next time.
handle() {
  cat "$1"
  echo
}

if [ "${1:-}" = handle ]; then
  for file in "$inbox"/*.json; do
    handled=${file%.json}.done
    if [ -e "$file" ] && [ ! -e "$handled" ]; then handle "$file" && : > "$handled"; fi
  done
  exit
fi

answer() {
  printf 'HTTP/1.1 %s\r\nConnection: close\r\n\r\n' "$1"
  exit
}

secret=${WEBHOOK_SECRET:-}
key=$(printf %s "${secret#whsec_}" | openssl base64 -d -A | od -An -v -tu1)
if [ "$secret" = "${secret#whsec_}" ] || [ -z "$key" ]; then
  echo "WEBHOOK_SECRET must hold the secret of the subscription: whsec_..." >&2
  answer "500 Internal Server Error"
fi

# HMAC-SHA256 of stdin (RFC 2104), as openssl takes a key on its command line only, which other users can read.
hmac() { { padded_key 92; { padded_key 54; cat; } | sha256; } | sha256; }
sha256() { openssl dgst -sha256 -binary; }
# The 32 bytes of the key and as many zeros, each XOR $1. As the format of printf they become bytes again.
padded_key() {
  # shellcheck disable=SC2059
  printf "$(for byte in $key $zeros; do printf '\\%03o' $((byte ^ $1)); done)"
}
zeros="0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"

id='' timestamp='' signatures='' length=''
carriage_return=$(printf '\r')
read -r method _
while IFS= read -r line && [ "$line" != "$carriage_return" ]; do
  value=${line#*:} value=${value# } value=${value%"$carriage_return"}
  case $line in
    [Ww]ebhook-[Ii]d:*) id=$value ;;
    [Ww]ebhook-[Tt]imestamp:*) timestamp=$value ;;
    [Ww]ebhook-[Ss]ignature:*) signatures=$value ;;
    [Cc]ontent-[Ll]ength:*) length=$value ;;
  esac
done

[ "$method" = POST ] || answer "405 Method Not Allowed"
case $length in '' | *[!0-9]* | ????????*) answer "413 Content Too Large" ;; esac
[ "$length" -le "$max_bytes" ] || answer "413 Content Too Large"

# An older request may be a copy that somebody sends again.
case $timestamp in '' | 0* | *[!0-9]* | ?????????????*) answer "401 Unauthorized" ;; esac
age=$(($(date +%s) - timestamp))
[ "${age#-}" -le "$tolerance_seconds" ] || answer "401 Unauthorized"

mkdir -p "$inbox"
body=$(mktemp "$inbox/XXXXXXXX")
trap 'rm -f "$body"' EXIT
head -c "$length" > "$body"

# Salted hashes are compared: how long that takes tells nothing about the signature.
salt=$(openssl rand -hex 16)
salted() { printf %s "$salt$1" | sha256 | openssl base64 -A; }
# The signature is over the bytes of the body as they came.
expected=$(salted "v1,$({ printf %s "$id.$timestamp." && cat "$body"; } | hmac | openssl base64 -A)")
# While a secret is rotated there are two signatures. One that is right is enough.
is_genuine=no
set -f
for signature in $signatures; do
  if [ "$(salted "$signature")" = "$expected" ]; then is_genuine=yes; fi
done
[ $is_genuine = yes ] || answer "401 Unauthorized"

# The body begins with the event's id. A link appears whole or not at all, and only one can have the name.
event_id=$(sed -n '1s/^{"event_id":"\([0-9]*\)".*/\1/p' "$body")
file=$inbox/$event_id.json
ln "$body" "$file" 2>&- || [ -e "$file" ] || answer "500 Internal Server Error"
answer "204 No Content"
