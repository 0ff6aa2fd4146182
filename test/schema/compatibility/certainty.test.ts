import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { checkSchema } from "../../../src/schema/check.ts";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import { isLong, lengthOf, report, rounds } from "../../faults/length.ts";
import { githubTypes } from "../../support/github.ts";
import { Judge } from "./judge.ts";
import { PERSONS_EDITS, PERSONS_SCHEMAS } from "./persons-edits.ts";
import { reachable } from "./random-edits.ts";
import { payloadFor, randomFrom } from "./random-payloads.ts";
import type { Json } from "./random-schemas.ts";

/** In the long form with some of GitHub's, as all would take long. */
const DOCUMENTS = isLong
  ? [
      ...PERSONS_SCHEMAS,
      ...githubTypes()
        .filter((_, index) => index % 2 === 0)
        .map(({ schemata }) => schemata as Json),
    ]
  : PERSONS_SCHEMAS.slice(0, 3);
const PLACES_EACH = lengthOf("schema/compatibility/certainty")["places each"];

/** The document with the edit made at some places, one at a time. */
function* editedBy(edit: (schema: Json) => boolean, document: Json, random: () => number): Generator<Json> {
  const count = reachable(document).length;
  const order = Array.from({ length: count }, (_, index) => ({ index, rank: random() })).toSorted(
    (a, b) => a.rank - b.rank,
  );
  let made = 0;
  for (const { index } of order) {
    const copy = structuredClone(document);
    if (!edit(reachable(copy)[index]!) || isDeepStrictEqual(copy, document)) continue;
    yield copy;
    if (++made === PLACES_EACH) return;
  }
}

test("at most two in a hundred edits that people make cannot be decided, and no break is called safe", () => {
  const undecided: string[] = [];
  const byKind: Record<string, string> = {};
  let total = 0;
  for (const [kind, edit] of Object.entries(PERSONS_EDITS)) {
    const random = randomFrom(kind.length);
    const before = undecided.length;
    let made = 0;
    for (const document of DOCUMENTS) {
      for (const next of editedBy(edit, document, random)) {
        const { breaks } = compare(document, next);
        made++;
        const unsure = breaks.filter(({ certainty }) => certainty === "cannot_prove");
        if (unsure.length > 0)
          undecided.push(`${kind}: ${unsure.map(({ side, pointer }) => `${side} ${pointer}`).join(", ")}`);
        if (PERSONS_SCHEMAS.includes(document))
          hunt(document, next, new Set(breaks.map(({ side }) => side)), random);
      }
    }
    expect(made, kind).toBeGreaterThan(0);
    total += made;
    byKind[kind] = `${undecided.length - before} of ${made}`;
  }
  const reported = `${undecided.length} of ${total}`;
  report("edits a person makes", { "cannot be decided": reported, ...byKind });
  expect(total).toBeGreaterThan(rounds(50, 300));
  expect(undecided.length / total, `${reported}\n${undecided.join("\n")}`).toBeLessThanOrEqual(0.02);
}, 900_000);

function hunt(old: Json, next: Json, broken: ReadonlySet<string>, random: () => number): void {
  checkSchema(next);
  const judge = new Judge(old, next);
  for (let round = 0; round < rounds(2, 10); round++) {
    const payload = payloadFor(round % 2 === 0 ? old : next, random);
    if (!broken.has("producer"))
      expect(judge.breaksProducer(payload), JSON.stringify({ next, payload })).toBe(false);
    if (!broken.has("consumer"))
      expect(judge.breaksConsumer(payload), JSON.stringify({ next, payload })).toBe(false);
  }
}
