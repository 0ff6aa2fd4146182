import { writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { dirname, join } from "node:path";
import { connect as connectTls, type PeerCertificate } from "node:tls";
import { Agent, request } from "undici";
import { expect, test } from "vitest";
import { findServer } from "../../src/app/server.ts";
import { connect } from "../../src/client/client.ts";
import { EvregError } from "../../src/domain/error.ts";
import { readTokenFile } from "../../src/runtime/find-server.ts";
import { OTHER_CERTIFICATE, OTHER_KEY, TEST_CERTIFICATE, TEST_KEY } from "../support/tls-fixture.ts";
import { closing, dataFolder, ORDER_PLACED, start } from "./setup.ts";

/** The files of a certificate beside the data folder. */
function certificateFiles(data: string, cert = TEST_CERTIFICATE, key = TEST_KEY) {
  const files = { cert: join(dirname(data), "cert.pem"), key: join(dirname(data), "key.pem") };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key, { mode: 0o600 });
  return files;
}

async function healthAt(url: string, ca: string): Promise<number> {
  const dispatcher = new Agent({ connect: { ca } });
  const { statusCode, body } = await request(`${url}/health`, { dispatcher });
  await body.dump();
  await dispatcher.close();
  return statusCode;
}

function certificateAt(port: number): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

test("HTTPS is served with the given certificate, and commands on this machine need no copy of it", async () => {
  const data = dataFolder();
  const tls = certificateFiles(data);
  const server = await start(data, { tls });
  expect(new URL(server.url).protocol).toBe("https:");
  expect(await healthAt(server.url, TEST_CERTIFICATE)).toBe(200);
  await expect(healthAt(server.url, OTHER_CERTIFICATE)).rejects.toThrow();

  const found = await findServer(data);
  expect(found?.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const local = closing(connect({ url: found!.url, token: readTokenFile(data)! }));
  await local.actions.create(ORDER_PLACED);
  expect((await local.doctor()).data).toContainEqual(
    expect.objectContaining({ check: "certificate", status: "ok", found: expect.stringContaining("2120") }),
  );

  await server.stop();
  await expect(healthAt(server.url, TEST_CERTIFICATE)).rejects.toThrow();
  await expect(local.health()).rejects.toMatchObject({ code: "unreachable" });
});

test("a connection without TLS is closed, and delays neither others nor the stop", async () => {
  const data = dataFolder();
  const server = await start(data, { tls: certificateFiles(data) });
  const port = Number(new URL(server.url).port);
  const plain = connectTcp(port, "127.0.0.1");
  const received: Buffer[] = [];
  plain.on("data", (chunk) => received.push(chunk)).on("error", () => undefined);
  const closed = new Promise((resolve) => plain.on("close", resolve));
  plain.write("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
  await closed;
  expect(Buffer.concat(received).toString()).not.toContain("HTTP/1.1");
  const silent = connectTcp(port, "127.0.0.1");
  silent.on("error", () => undefined);
  await new Promise((resolve) => silent.on("connect", resolve));
  expect(await healthAt(server.url, TEST_CERTIFICATE)).toBe(200);
  await server.stop();
});

test("a renewed certificate is used for new connections, and an invalid one is ignored", async () => {
  const data = dataFolder();
  const tls = certificateFiles(data);
  const server = await start(data, { tls });
  const port = Number(new URL(server.url).port);
  const before = await certificateAt(port);

  writeFileSync(tls.cert, OTHER_CERTIFICATE);
  expect(() => server.renewCertificate(tls)).toThrow(EvregError);
  expect((await certificateAt(port)).fingerprint256).toBe(before.fingerprint256);

  writeFileSync(tls.key, OTHER_KEY);
  server.renewCertificate(tls);
  expect((await certificateAt(port)).fingerprint256).not.toBe(before.fingerprint256);
  expect(await healthAt(server.url, OTHER_CERTIFICATE)).toBe(200);
});

test("a certificate that is not a regular file is refused, as reading a pipe would block", async () => {
  const data = dataFolder();
  const tls = { ...certificateFiles(data, TEST_CERTIFICATE, TEST_KEY), cert: data };
  await expect(start(data, { tls })).rejects.toMatchObject({
    code: "usage",
    message: `tls.cert: ${data} is no file.`,
  });
  const key = join(data, "gone.pem");
  await expect(start(data, { tls: { cert: data, key } })).rejects.toMatchObject({
    message: `tls.cert: ${data} is no file. tls.key: ${key} cannot be read (ENOENT).`,
  });
});

test.each([
  ["is missing", undefined, "cannot be read (ENOENT)."],
  ["holds none", TEST_KEY, "holds no certificate in PEM form."],
  [
    "holds a broken one",
    `${TEST_CERTIFICATE}${OTHER_CERTIFICATE.replaceAll("M", "A")}`,
    "holds a certificate (number 2) that cannot be read.",
  ],
])("a server does not start with a file of authorities that %s", async (_, text, why) => {
  const data = dataFolder();
  const ca = join(dirname(data), "ca.pem");
  if (text !== undefined) writeFileSync(ca, text);
  await expect(start(data, { delivery: { ca } })).rejects.toMatchObject({
    code: "usage",
    message: `delivery.ca: ${ca} ${why}`,
  });
  writeFileSync(ca, `The one of our office:\n${TEST_CERTIFICATE}\n${OTHER_CERTIFICATE}`);
  await start(data, { delivery: { ca } });
});

test.each<[string, string, string, string]>([
  ["no certificate", "nonsense", TEST_KEY, "is no certificate"],
  ["no key", TEST_CERTIFICATE, "nonsense", "is no private key"],
  ["another one's key", TEST_CERTIFICATE, OTHER_KEY, "is not the key of the certificate"],
])("a server does not start with %s", async (_, cert, key, why) => {
  const data = dataFolder();
  const tls = certificateFiles(data, cert, key);
  const error: unknown = await start(data, { tls }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "usage", message: expect.stringContaining(why) });
  expect((error as Error).message).not.toContain("PRIVATE");
  // The folder is free again.
  await start(data);
});
