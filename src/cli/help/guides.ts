/** Its commands use a `serve --dev`, which needs no token. */
export const GETTING_STARTED = `From nothing to a delivery that is verified, on your own machine.

1. Run a server for this machine alone, and leave it running:

  evreg serve --dev

2. In a second terminal, in the same folder, say what can be published, by a
   JSON Schema:

  echo '{"type": "object", "required": ["id"]}' |
    evreg actions create order.created --application shop --schema -

3. Subscribe a handler, and keep the secret, which is shown only now:

  evreg subscriptions create --application billing --subscription invoices \\
    --action order.created --handler http://127.0.0.1:9000/ --json |
    jq -r .data.secret > hook.secret

4. Run the handler, here in Python (python3 receive.py):

  import hashlib, hmac
  from http.server import BaseHTTPRequestHandler, HTTPServer

  secret = open("hook.secret").read().strip().encode()

  class Handler(BaseHTTPRequestHandler):
      def do_POST(self):
          body = self.rfile.read(int(self.headers["Content-Length"]))
          right = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
          given = self.headers["X-Evreg-Signature"] or ""
          genuine = hmac.compare_digest(given.encode(), right.encode())
          self.send_response(204 if genuine else 401)
          self.end_headers()
          print("verified" if genuine else "refused", body.decode(), flush=True)

  HTTPServer(("127.0.0.1", 9000), Handler).serve_forever()

5. In a third terminal, try the handler alone, with a payload made up from the
   schema:

  evreg subscriptions test billing/invoices

   Then publish, and wait until it is delivered:

  evreg publish order.created '{"id": "A-1"}' --wait

   Or as any program does it, over HTTP:

  curl http://127.0.0.1:7480/v1/events -H 'Content-Type: application/json' \\
    -d '{"action": "order.created", "payload": {"id": "A-2"}}'

What became of it: evreg deliveries, and evreg help delivery-states. How a
handler refuses old requests too: evreg help signatures. To let others reach
it, start it without --dev: evreg serve --help, and evreg tokens create --help.
`;

/** Its examples are run by a test, against the headers that are really sent. */
export const SIGNATURES = `Each delivery is a POST that is signed with the secret of its subscription:
whsec_ and base64, shown when the subscription is created or its secret is
rotated. Verify one of the two signatures, over the bytes of the body as they
came, before the body is parsed.

  webhook-signature  (Standard Webhooks 1.0.0, whose libraries can be used)
    v1, and the base64 HMAC-SHA256 of <webhook-id>.<webhook-timestamp>.<body>.
    The key is what the part of the secret behind whsec_ decodes to. While a
    secret is being rotated there are two, with a space between; one that is
    right is enough. Refuse a webhook-timestamp (in seconds) that is more than
    five minutes off: it may be an old request, sent again.

  X-Evreg-Signature
    sha256= and the hex HMAC-SHA256 of the body. The key is the whole secret as
    it was shown, whsec_ included; during a rotation the one before.

Compare in constant time. An event can come twice: webhook-id is the same in
each retry of a delivery, and X-Evreg-Delivery is <event_id>_<attempt>.
Authorization: Bearer carries the secret itself unless the subscription says
otherwise (--bearer none), so keep it out of logs.

In Node:

  import { createHmac, timingSafeEqual } from "node:crypto";

  function isGenuine(headers, body, secret, nowMs = Date.now()) {
    const { "webhook-id": id, "webhook-timestamp": timestamp } = headers;
    if (!(Math.abs(nowMs / 1000 - timestamp) <= 300)) return false;
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    const hmac = createHmac("sha256", key);
    const right = hmac.update(\`\${id}.\${timestamp}.\`).update(body).digest();
    const signatures = headers["webhook-signature"] ?? "";
    return signatures.split(" ").some((one) => {
      const sent = Buffer.from(one.replace(/^v1,/, ""), "base64");
      return sent.length === right.length && timingSafeEqual(sent, right);
    });
  }

In Python:

  import base64, hashlib, hmac, time

  def is_genuine(headers, body, secret, now=None):
      now = time.time() if now is None else now
      message_id = headers.get("webhook-id", "")
      timestamp = headers.get("webhook-timestamp", "")
      if not timestamp.isdecimal() or abs(now - int(timestamp)) > 300:
          return False
      key = base64.b64decode(secret.removeprefix("whsec_"))
      signed = f"{message_id}.{timestamp}.".encode() + body
      digest = hmac.new(key, signed, hashlib.sha256).digest()
      right = b"v1," + base64.b64encode(digest)
      given = headers.get("webhook-signature", "").encode().split()
      return any(hmac.compare_digest(one, right) for one in given)

X-Evreg-Signature by hand, to compare:

  openssl dgst -sha256 -hmac "$SECRET" body.json
`;
