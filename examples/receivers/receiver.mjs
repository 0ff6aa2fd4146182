// Receives webhooks of evreg. Needs Node 20 or later, and no package.
//
//   WEBHOOK_SECRET=whsec_... node receiver.mjs
//
// It listens on 127.0.0.1, on port 8080 or PORT: put your HTTPS proxy in front of it. Each event is stored once, as
// <event_id>.json in the folder "inbox" or INBOX. Then the request is answered. Then handle() does the work.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

const { WEBHOOK_SECRET = "", PORT = "8080", INBOX = "inbox" } = process.env;
const KEY = Buffer.from(WEBHOOK_SECRET.trim().replace(/^whsec_/, ""), "base64");
const TOLERANCE_SECONDS = 300;
const MAX_BYTES = 2 * 1024 * 1024;

/** Your work. If the program dies in the middle of it, it runs again for that event at the next start. */
async function handle(event) {
  console.log(event.event_id, event.action, JSON.stringify(event.payload));
}

/** The signature is over the bytes of the body as they came: check it before you parse them. */
function isGenuine(headers, body) {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "" } = headers;
  // An older request may be a copy that somebody sends again.
  if (!/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const hmac = createHmac("sha256", KEY).update(`${id}.${timestamp}.`).update(body);
  const expected = Buffer.from(`v1,${hmac.digest("base64")}`);
  // While a secret is rotated there are two signatures. One that is right is enough.
  return (headers["webhook-signature"] ?? "").split(" ").some((signature) => {
    const sent = Buffer.from(signature);
    return sent.length === expected.length && timingSafeEqual(sent, expected);
  });
}

/** False for a duplicate. A link appears whole or not at all, and only one can have the name. */
async function storeOnce(id, body) {
  const part = join(INBOX, `${randomUUID()}.part`);
  await writeFile(part, body);
  try {
    await link(part, join(INBOX, `${id}.json`));
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(part);
  }
}

let last = Promise.resolve();

/** Handles one stored event after the other. */
function handleLater(id) {
  last = last.then(() => handleStored(id));
}

async function handleStored(id) {
  try {
    await handle(JSON.parse(await readFile(join(INBOX, `${id}.json`), "utf8")));
    await writeFile(join(INBOX, `${id}.done`), "");
  } catch (error) {
    console.error(`Event ${id} is tried again at the next start:`, error);
  }
}

async function receive(request, response) {
  const pieces = [];
  let bytes = 0;
  for await (const piece of request) {
    bytes += piece.length;
    if (bytes > MAX_BYTES) return; // This closes the connection.
    pieces.push(piece);
  }
  const body = Buffer.concat(pieces);
  if (!isGenuine(request.headers, body)) {
    response.writeHead(401).end();
    return;
  }
  const { event_id: id } = JSON.parse(body.toString());
  const isNew = await storeOnce(id, body);
  response.writeHead(204).end();
  if (isNew) handleLater(id);
}

if (!WEBHOOK_SECRET.startsWith("whsec_") || KEY.length === 0) {
  throw new Error("WEBHOOK_SECRET must hold the secret of the subscription: whsec_...");
}
await mkdir(INBOX, { recursive: true });
const names = new Set(await readdir(INBOX));
for (const name of names) {
  const [id, ending] = name.split(".");
  if (ending === "json" && !names.has(`${id}.done`)) handleLater(id);
}
createServer((request, response) => {
  receive(request, response).catch((error) => {
    console.error(error.message);
    response.writeHead(500).end(); // evreg sends the event again.
  });
}).listen(Number(PORT), "127.0.0.1");
