import { Server as HttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { listen } from "listhen";
import { afterEach, expect, test, vi } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { listenAt, listenTlsAt } from "../../src/http/listen.ts";

vi.mock("listhen", async (original) => {
  const { listen: real } = await original<{ listen: typeof listen }>();
  return { listen: vi.fn(real) };
});

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
  await new Promise<void>((resolve) => server.listen(port, HOST, resolve));
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const port = await take(0);
  await new Promise((resolve) => open.pop()!.close(resolve));
  return port;
}

async function refusal(port: number): Promise<EvregError> {
  const error: unknown = await listenAt(HOST, port, {}).then(
    (server) => (open.push(server), undefined),
    (failure: unknown) => failure,
  );
  if (!(error instanceof EvregError)) throw new Error("it was not refused", { cause: error });
  return error;
}

test("a port that is taken after the probe is a conflict", async () => {
  const port = await freePort();
  const real = vi.mocked(listen).getMockImplementation()!;
  vi.mocked(listen).mockImplementationOnce(async (...given) => {
    await take(port);
    return real(...given);
  });
  expect(await refusal(port)).toMatchObject({ code: "conflict", details: { host: HOST, port } });
});

test("a port that is taken just before listhen listens is a conflict, and the process goes on", async () => {
  const port = await freePort();
  takeBeforeListening(port);
  expect(await refusal(port)).toMatchObject({ code: "conflict", details: { host: HOST, port } });
  expect(process.hasUncaughtExceptionCaptureCallback()).toBe(false);
});

test("where any free port will do, another is found in place of one that was taken", async () => {
  takeBeforeListening();
  const server = await listenAt(HOST, 0, {});
  open.push(server);
  expect(open).toHaveLength(2);
  expect(server.listening).toBe(true);
});

/** @param port the one that listhen listens on, unless given */
function takeBeforeListening(port?: number): void {
  const real = Reflect.get(HttpServer.prototype, "listen") as (...given: unknown[]) => HttpServer;
  vi.spyOn(HttpServer.prototype, "listen").mockImplementationOnce(function listenLate(
    this: HttpServer,
    ...given: unknown[]
  ) {
    void take(port ?? (given[0] as number)).then(() => Reflect.apply(real, this, given));
    return this;
  });
}

test("two ports are opened at once, http and https", async () => {
  const servers = await Promise.all([listenAt(HOST, 0, {}), listenAt(HOST, 0, {}), listenTlsAt(HOST, 0, {})]);
  open.push(...servers);
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  expect(new Set(ports).size).toBe(3);
});
