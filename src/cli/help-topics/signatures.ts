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
    return headers["webhook-signature"].split(" ").some((one) => {
      const given = Buffer.from(one.replace(/^v1,/, ""), "base64");
      return given.length === right.length && timingSafeEqual(given, right);
    });
  }

In Python:

  import base64, hashlib, hmac, time

  def is_genuine(headers, body, secret, now=None):
      now = time.time() if now is None else now
      message_id = headers["webhook-id"]
      timestamp = headers["webhook-timestamp"]
      if not timestamp.isdecimal() or abs(now - int(timestamp)) > 300:
          return False
      key = base64.b64decode(secret.removeprefix("whsec_"))
      signed = f"{message_id}.{timestamp}.".encode() + body
      digest = hmac.new(key, signed, hashlib.sha256).digest()
      right = b"v1," + base64.b64encode(digest)
      given = headers["webhook-signature"].encode().split()
      return any(hmac.compare_digest(one, right) for one in given)

X-Evreg-Signature by hand, to compare:

  openssl dgst -sha256 -hmac "$SECRET" body.json
`;
