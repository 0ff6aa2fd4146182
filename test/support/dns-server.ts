import { createSocket } from "node:dgram";
import { createServer, isIP, type AddressInfo, type Socket } from "node:net";

/** A real DNS server on loopback, over UDP and, for what does not fit there, TCP. It answers as told. */
export interface DnsServer {
  /** `127.0.0.1:<port>` */
  readonly address: string;
  /** Questions so far, such as `A example.test`, in the order they came; one that was sent on to TCP counts once. */
  readonly questions: readonly string[];
  /** The answer to each question: no such name unless set. */
  answer: (name: string, type: "A" | "AAAA") => DnsAnswer;
  close(): Promise<void>;
}

/**
 * `silent`: no answer at all. `closed`: it must be asked for over TCP, and the connection ends without one. `servfail`, `nxdomain`: an error. A function: the bytes of the answer, as a broken server may send them.
 * Else the records; with none, the name has none of this type.
 */
type DnsAnswer = "silent" | "closed" | "servfail" | "nxdomain" | RawAnswer | readonly DnsRecord[];

/** @param question as it was asked, behind the header */
type RawAnswer = (id: Buffer, question: Buffer) => Buffer;

/** An IP address, of either family whatever was asked, or the name of a CNAME. */
export type DnsRecord =
  | string
  | { readonly data: string; readonly name?: string; readonly ttlSeconds?: number };

const TYPES: Readonly<Record<number, "A" | "AAAA">> = { 1: "A", 28: "AAAA" };
const ERRORS = { servfail: 2, nxdomain: 3 } as const;
const MOST_UDP_BYTES = 1_200;
/** In place of an answer. */
const CLOSED = Buffer.alloc(0);

export async function startDnsServer(): Promise<DnsServer> {
  const questions: string[] = [];
  const sockets = new Set<Socket>();

  function note(query: Buffer): void {
    const { name, type } = question(query);
    const asked = TYPES[type];
    if (asked !== undefined) questions.push(`${asked} ${name}`);
  }

  function reply(query: Buffer): Buffer | undefined {
    const { name, type, end } = question(query);
    const asked = TYPES[type];
    const answer = asked === undefined ? [] : server.answer(name, asked);
    if (answer === "silent") return undefined;
    if (answer === "closed") return CLOSED;
    if (typeof answer === "function") return answer(query.subarray(0, 2), query.subarray(12, end));
    const records = typeof answer === "string" ? [] : answer;
    const error = typeof answer === "string" ? ERRORS[answer] : 0;
    return Buffer.concat([
      query.subarray(0, 2),
      words(0x8180 | error, 1, records.length, 0, 0),
      query.subarray(12, end),
      ...records.map((record) => encoded(record)),
    ]);
  }

  const udp = createSocket("udp4");
  udp.on("message", (query, from) => {
    const answer = reply(query);
    const fits = answer === undefined || (answer !== CLOSED && answer.byteLength <= MOST_UDP_BYTES);
    if (fits) note(query);
    if (answer === undefined) return;
    const { end } = question(query);
    // With the bit that says to ask again over TCP.
    const cut = [query.subarray(0, 2), words(0x8380, 1, 0, 0, 0), query.subarray(12, end)];
    udp.send(fits ? answer : Buffer.concat(cut), from.port, from.address);
  });
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    let pending = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.byteLength >= 2 && pending.byteLength >= 2 + pending.readUInt16BE(0)) {
        const length = pending.readUInt16BE(0);
        const query = pending.subarray(2, 2 + length);
        note(query);
        const answer = reply(query);
        pending = pending.subarray(2 + length);
        if (answer === CLOSED) socket.destroy();
        else if (answer !== undefined) socket.write(Buffer.concat([words(answer.byteLength), answer]));
      }
    });
  });
  await new Promise<void>((resolve) => {
    tcp.listen(0, "127.0.0.1", resolve);
  });
  const { port } = tcp.address() as AddressInfo;
  await new Promise<void>((resolve) => {
    udp.bind(port, "127.0.0.1", resolve);
  });

  const server: DnsServer = {
    address: `127.0.0.1:${port}`,
    questions,
    answer: () => "nxdomain",
    async close() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([
        new Promise<void>((resolve) => {
          udp.close(resolve);
        }),
        new Promise<void>((resolve) => {
          tcp.close(() => resolve());
        }),
      ]);
    },
  };
  return server;
}

function question(query: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function encoded(record: DnsRecord): Buffer {
  const { data, name, ttlSeconds = 0 } = typeof record === "string" ? { data: record } : record;
  // Without a name of its own it is a record of the name that was asked for.
  const owner = name === undefined ? words(0xc00c) : nameBytes(name);
  const [type, bytes] = payload(data);
  return Buffer.concat([owner, words(type, 1, 0, ttlSeconds, bytes.byteLength), bytes]);
}

function payload(data: string): readonly [number, Buffer] {
  if (isIP(data) === 4) return [1, Buffer.from(data.split(".").map(Number))];
  if (isIP(data) === 6) return [28, v6Bytes(data)];
  return [5, nameBytes(data)];
}

function v6Bytes(text: string): Buffer {
  // The URL parser writes dotted parts in hex.
  const [head = "", tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split("::");
  const first = groups(head);
  const last = groups(tail ?? "");
  return words(...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last);
}

function groups(part: string): number[] {
  return part === "" ? [] : part.split(":").map((group) => Number.parseInt(group, 16));
}

function nameBytes(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

export function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) bytes.writeUInt16BE(value, index * 2);
  return bytes;
}
