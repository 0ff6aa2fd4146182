#!/bin/sh
# Publishes release.published for a tag and its commit. Needs curl and jq; GitHub's runners have both.
#
#   EVREG_URL=https://events.example.com EVREG_TOKEN=evreg_... sh ci/publish-release.sh v1.4.0 "$(git rev-parse HEAD)"
#
# For the same tag and commit it publishes once, however often the pipeline runs. Exit code 0: the event is stored.
set -eu
: "${EVREG_URL:?must hold the address of the evreg server}"
: "${EVREG_TOKEN:?must hold a token of the scope publish}"
tag=$1 commit=$2

event=$(jq -n --arg version "${tag#v}" --arg commit "$commit" \
  '{action: "release.published", payload: {version: $version, commit: $commit}}')
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# The token comes through a pipe: the words of a command can be read by others on the machine.
# evreg stores nothing twice for one idempotency key, so curl may try again as often as it likes.
status=$(printf 'header = "Authorization: Bearer %s"\n' "$EVREG_TOKEN" |
  curl --config - --silent --show-error --max-time 30 --retry 5 --retry-connrefused \
    --header 'Content-Type: application/json' --header "Idempotency-Key: release-$tag-$commit" \
    --data "$event" --output "$answer" --write-out '%{http_code}' "$EVREG_URL/v1/events")

case $status in
  201) echo "Published release.published as event $(jq .data.rowid "$answer")." ;;
  200) echo "It was published before, as event $(jq .data.rowid "$answer")." ;;
  *)
    echo "release.published was not published: evreg answered $status." >&2
    # Where the payload breaks the schema, details.errors names each field and what is wrong with it.
    jq -r '.error, (.details.errors[]? | "  \(.field) \(.message)" + if .value == null then "" else ": \(.value)" end)' \
      "$answer" >&2 || cat "$answer" >&2
    exit 1
    ;;
esac
