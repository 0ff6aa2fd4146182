import { LRUCache } from "lru-cache";
import type { Sql } from "../thread/sql.ts";
import { readableOr } from "../thread/stored-json.ts";

// Half of a small payload is names of members, and its schema names them too. In the file such a name, with its quotes and its
// colon, is a control character or two bytes that begin with one: JSON contains none of them as it is. So a payload without
// them means itself, as those of before do, and those whose schema names nothing.

/** Each stands for a name. Without NUL, at which the engine could end a text. */
const SINGLE = Array.from({ length: 0x1a }, (_, index) => index + 1).filter((code) => !isWhiteSpace(code));
/** From this one on to the last control character, each stands for 256 names, and the byte behind it says which. */
const FIRST_LEAD = 0x1b;
const FIRST_TEXT = 0x20;
const QUOTE = 0x22;

/** Names beyond the codes stay as they are. */
const MAX_NAMES = SINGLE.length + (FIRST_TEXT - FIRST_LEAD) * 256;

/** Longer ones stay as they are, so that the room for many, by what they take in the file, is enough as they are restored. */
export const MAX_SHORTENED_BYTES = 4_096;

function isWhiteSpace(byte: number): boolean {
  return byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

interface Name {
  /** With its quotes and its colon. */
  readonly text: Uint8Array;
  readonly code: number;
  /** The byte behind it; -1 where there is none. */
  readonly second: number;
}

/** What `PayloadNames` take in memory, and each name of theirs. */
const OWN_BYTES = 3_000;
const NAME_BYTES = 300;

/** The names in the schema of a revision, by which its payloads are shortened and restored. */
export class PayloadNames {
  /** By the first byte of the name. */
  readonly #byFirst: (Name[] | undefined)[] = Array.from({ length: 256 });
  readonly #single: (Uint8Array | undefined)[] = Array.from({ length: FIRST_LEAD });
  readonly #paired: (Uint8Array | undefined)[] = [];
  readonly isEmpty: boolean;
  /** About what it takes in memory. */
  readonly bytes: number;

  constructor(names: readonly string[]) {
    this.isEmpty = names.length === 0;
    this.bytes = OWN_BYTES + names.length * NAME_BYTES;
    for (const [index, name] of names.slice(0, MAX_NAMES).entries()) {
      const text = Buffer.from(`"${name}":`);
      const single = SINGLE[index];
      const place = index - SINGLE.length;
      if (single === undefined) this.#paired[place] = text;
      else this.#single[single] = text;
      const code = single ?? FIRST_LEAD + (place >> 8);
      const second = single === undefined ? place & 0xff : -1;
      (this.#byFirst[text[1]!] ??= []).push({ text, code, second });
    }
  }

  /** Writes the payload at `at` of `out` as it is stored, in no more bytes than it has, and answers where it ends. */
  shorten(payload: Uint8Array, out: Uint8Array, at: number): number {
    if (payload.length > MAX_SHORTENED_BYTES) {
      out.set(payload, at);
      return at + payload.length;
    }
    const { length } = payload;
    let end = at;
    let from = 0;
    while (from < length) {
      const byte = payload[from]!;
      if (byte === QUOTE) {
        const name = this.#nameAt(payload, from);
        if (name !== undefined) {
          out[end] = name.code;
          end += 1;
          if (name.second >= 0) {
            out[end] = name.second;
            end += 1;
          }
          from += name.text.length;
          continue;
        }
      } else if (byte < FIRST_TEXT && !isWhiteSpace(byte)) {
        throw new Error("a payload is not JSON");
      }
      out[end] = byte;
      end += 1;
      from += 1;
    }
    return end;
  }

  #nameAt(payload: Uint8Array, at: number): Name | undefined {
    // With its closing quote no name is the beginning of another.
    const names = this.#byFirst[payload[at + 1]!];
    if (names === undefined) return undefined;
    for (let place = 0; place < names.length; place += 1) {
      const name = names[place]!;
      const { text } = name;
      let index = text.length - 1;
      while (index > 1 && payload[at + index] === text[index]) index -= 1;
      if (index === 1) return name;
    }
    return undefined;
  }

  /** Writes the payload as it was published at `at` of `out`, which has room for it, and answers where it ends. */
  restore(stored: Uint8Array, out: Uint8Array, at: number): number {
    if (stored.length > MAX_SHORTENED_BYTES) {
      out.set(stored, at);
      return at + stored.length;
    }
    // Beyond it is no payload but damage.
    const limit = at + MAX_SHORTENED_BYTES;
    let end = at;
    for (let from = 0; from < stored.length && end < limit; from += 1) {
      const byte = stored[from]!;
      const text = byte < FIRST_TEXT ? this.#textOf(byte, stored[from + 1]) : undefined;
      if (text === undefined) {
        out[end++] = byte;
        continue;
      }
      if (byte >= FIRST_LEAD) from += 1;
      for (let index = 0; index < text.length && end < limit; index += 1) out[end++] = text[index]!;
    }
    return end;
  }

  #textOf(code: number, next: number | undefined): Uint8Array | undefined {
    return code < FIRST_LEAD ? this.#single[code] : this.#paired[((code - FIRST_LEAD) << 8) | (next ?? 0)];
  }
}

/** By their text, as each commit and each read needs them: so nothing has to be forgotten when a transaction is undone. */
const known = new LRUCache<string, PayloadNames>({
  maxSize: 16_000_000,
  sizeCalculation: ({ bytes }, text) => bytes + text.length,
});

/** @param text as it is stored; `null` where a revision has none */
export function namesOf(text: string | null): PayloadNames {
  if (text === null) return NO_NAMES;
  let names = known.get(text);
  if (names === undefined) known.set(text, (names = new PayloadNames(readableOr([], text, namesFrom))));
  return names;
}

function namesFrom(value: unknown): readonly string[] | undefined {
  // In a list that is found under `properties`, the places are numbers.
  return Array.isArray(value) ? value.filter((name) => typeof name === "string") : undefined;
}

const NO_NAMES = new PayloadNames([]);

/**
 * The names of the revisions `revisions[i]` of the actions `actions[i]`, in their order.
 * @param from where they are stored; `schema`, where that is damaged, is what they were made of
 */
export function loadNames(
  sql: Sql,
  actions: readonly number[],
  revisions: readonly number[],
  from: "payload_names" | "schema" = "payload_names",
): readonly PayloadNames[] {
  // Nearly all are of the same, so no key is made of the two.
  const distinct: (readonly [actionId: number, revision: number])[] = [];
  const places = new Map<number, Map<number, number>>();
  const placeOf = actions.map((actionId, index) => {
    const revision = revisions[index]!;
    const last = distinct[distinct.length - 1];
    if (last?.[0] === actionId && last[1] === revision) return distinct.length - 1;
    let ofAction = places.get(actionId);
    if (ofAction === undefined) places.set(actionId, (ofAction = new Map()));
    let place = ofAction.get(revision);
    if (place === undefined) ofAction.set(revision, (place = distinct.push([actionId, revision]) - 1));
    return place;
  });
  // A text, which the engine would otherwise take for a part of the JSON.
  const made = `(SELECT ${namesIn("m.schemata")} || '' FROM action_revision AS m
    WHERE m.action_id = r.value ->> 0 AND m.revision = r.value ->> 1)`;
  const stored = `(SELECT n.names FROM payload_names AS n
    WHERE n.action_id = r.value ->> 0 AND n.revision = r.value ->> 1)`;
  const { found } = sql.first<{ found: string }>(
    `SELECT json_group_array(${from === "payload_names" ? `coalesce(${stored}, ${made})` : made}) AS found
      FROM json_each(?) AS r`,
    JSON.stringify(distinct),
  )!;
  const texts = JSON.parse(found) as (string | null)[];
  const names = texts.map(namesOf);
  return placeOf.map((place) => names[place]!);
}

/**
 * SQL for the names in a schema, as JSON. What they are for a revision is stored with it: this may change, but for
 * migration 14.
 */
export function namesIn(schemata: string): string {
  return `(SELECT json_group_array(name) FROM (
      SELECT DISTINCT key AS name FROM json_tree(iif(json_valid(${schemata}), ${schemata}, '{}'))
      WHERE path GLOB '*.properties' AND octet_length(key) BETWEEN 1 AND 64
        AND key NOT GLOB '*[^ !#-[^-~]*'
      LIMIT ${MAX_NAMES}))`;
}
