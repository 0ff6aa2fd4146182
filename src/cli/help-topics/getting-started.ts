/** Its commands are of a `serve --dev`, which asks for no token. */
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

5. In a third terminal, publish, and wait until it is delivered:

  evreg publish order.created '{"id": "A-1"}' --wait

   Or as any program does it, over HTTP:

  curl http://127.0.0.1:7480/v1/events -H 'Content-Type: application/json' \\
    -d '{"action": "order.created", "payload": {"id": "A-2"}}'

What became of it: evreg deliveries, and evreg help delivery-states. How a
handler refuses old requests too: evreg help signatures. For others to reach,
leave --dev away: evreg serve --help, and evreg tokens create --help.
`;
