import { type AddressInfo, createServer, Server } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { listenAt, listenTlsAt } from "../../src/http/listen.ts";

const HOST = "127.0.0.1";
const open: Server[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(open.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

/** Takes the port as another process would. */
async function take(port: number): Promise<number> {
  const server = createServer();
  open.push(server);
  await new Promise<void>((resolve) => {
    server.listen(port, HOST, resolve);
  });
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const port = await take(0);
  await new Promise((resolve) => open.pop()!.close(resolve));
  return port;
}

/** Who listens while a port is opened, in this order. */
const ORDER = ["probe", "listhen's try", "listhen"] as const;

/** Takes the port just before one of them listens on it. */
function takeBefore(who: (typeof ORDER)[number], port?: number): void {
  const real = Reflect.get(Server.prototype, "listen") as (...given: unknown[]) => Server;
  let calls = 0;
  vi.spyOn(Server.prototype, "listen").mockImplementation(function listenLate(
    this: Server,
    ...given: unknown[]
  ) {
    calls += 1;
    if (calls - 1 !== ORDER.indexOf(who)) return Reflect.apply(real, this, given);
    void take(port ?? (given[0] as number)).then(() => Reflect.apply(real, this, given));
    return this;
  });
}

async function refusal(port: number): Promise<EvregError> {
  const error: unknown = await listenAt(HOST, port, {}).then(
    (server) => void open.push(server),
    (failure: unknown) => failure,
  );
  if (!(error instanceof EvregError)) throw new Error("it was not refused", { cause: error });
  return error;
}

test.each(ORDER)(
  "a port that is taken just before the %s is a conflict, and the process goes on",
  async (who) => {
    const port = await freePort();
    takeBefore(who, port);
    expect(await refusal(port)).toMatchObject({ code: "conflict", details: { host: HOST, port } });
    expect(process.hasUncaughtExceptionCaptureCallback()).toBe(false);
  },
);

test("where any free port will do, another is found in place of one that was taken", async () => {
  takeBefore("listhen");
  const server = await listenAt(HOST, 0, {});
  open.push(server);
  expect(open).toHaveLength(2);
  expect(server.listening).toBe(true);
});

test("several ports are opened at once, for http and https", async () => {
  const servers = await Promise.all([listenAt(HOST, 0, {}), listenAt(HOST, 0, {}), listenTlsAt(HOST, 0, {})]);
  open.push(...servers);
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  expect(new Set(ports).size).toBe(3);
});
