# Receives webhooks of evreg. Needs Python 3.9 or later, and no package.
#
#   WEBHOOK_SECRET=whsec_... python3 receiver.py
#
# It listens on 127.0.0.1, on port 8080 or PORT: put your HTTPS proxy in front of it. Each event is stored once, as
# <event_id>.json in the folder "inbox" or INBOX. Then the request is answered. Then handle() does the work.
import base64, hashlib, hmac, json, os, queue, re, sys, threading, time, traceback, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SECRET = os.environ.get("WEBHOOK_SECRET", "").strip()
INBOX = Path(os.environ.get("INBOX", "inbox"))
TOLERANCE_SECONDS = 300
MAX_BYTES = 2 * 1024 * 1024

if not re.fullmatch("whsec_[A-Za-z0-9+/]{4,}={0,2}", SECRET):
    sys.exit("WEBHOOK_SECRET must hold the secret of the subscription: whsec_...")
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))


def handle(event):
    """Your work. If the program dies in the middle of it, it runs again for that event at the next start."""
    print(event["event_id"], event["action"], json.dumps(event["payload"], ensure_ascii=False), flush=True)


def is_genuine(headers, body):
    """The signature is over the bytes of the body as they came: check it before you parse them."""
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    # An older request may be a copy that somebody sends again.
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest())
    # While a secret is rotated there are two signatures. One that is right is enough.
    sent = headers.get("webhook-signature", "").encode().split(b" ")
    return any(hmac.compare_digest(signature, expected) for signature in sent)


def store_once(event_id, body):
    """False for a duplicate. A link appears whole or not at all, and only one can have the name."""
    part = INBOX / f"{uuid.uuid4()}.part"
    part.write_bytes(body)
    try:
        os.link(part, INBOX / f"{event_id}.json")
        return True
    except FileExistsError:
        return False
    finally:
        part.unlink()


stored = queue.Queue()


def handle_stored():
    while True:
        file = stored.get()
        try:
            handle(json.loads(file.read_bytes()))
            file.with_suffix(".done").touch()
        except Exception:
            print(f"{file} is tried again at the next start:", file=sys.stderr)
            traceback.print_exc()


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # Seconds to wait for the next bytes of a request.

    def do_POST(self):
        length = self.headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MAX_BYTES:
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not is_genuine(self.headers, body):
            return self.answer(401)
        event_id = json.loads(body)["event_id"]
        is_new = store_once(event_id, body)
        self.answer(204)
        if is_new:
            stored.put(INBOX / f"{event_id}.json")

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


INBOX.mkdir(exist_ok=True)
for left in INBOX.glob("*.json"):
    if not left.with_suffix(".done").exists():
        stored.put(left)
threading.Thread(target=handle_stored, daemon=True).start()
ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8080"))), Receiver).serve_forever()
