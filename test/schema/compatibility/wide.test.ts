import { expect, test } from "vitest";
import { compare } from "../../../src/schema/compatibility/compare.ts";
import type { SchemaBreak } from "../../../src/domain/action.ts";
import { lengthOf, report, rounds, someOf } from "../../faults/length.ts";
import { cpuMs } from "../../support/cpu-time.ts";
import { asyncApiVersions, githubVersions } from "../../support/github.ts";
import { ifTaken } from "../refused.ts";
import type { Json } from "./random-schemas.ts";
import { at, object, text, whole } from "./rule-cases.ts";

/**
 * The processor time that one comparison may take. The ordinary suite runs beside other processes, which slow each other
 * down, so it only finds what is several times slower.
 */
const LONGEST_MS = rounds(3_000, 1_000);
/** A machine that is busy with something else is given another chance. */
const TRIES = 3;

interface Measured {
  readonly breaks: readonly SchemaBreak[];
  readonly ms: number;
}

function measured(old: Json, next: Json): Measured {
  const before = cpuMs();
  const breaks = compare(old, next);
  return { breaks, ms: cpuMs() - before };
}

/** The comparison, the quickest of some. */
function compared(old: Json, next: Json): Measured {
  let best = measured(old, next);
  for (let tries = 1; tries < TRIES && best.ms > LONGEST_MS; tries++) {
    const again = measured(old, next);
    best = { ...again, ms: Math.min(best.ms, again.ms) };
  }
  return best;
}

const values = (count: number): string[] => Array.from({ length: count }, (_, index) => `value ${index}`);
const listed = (count: number, rest: Json = {}): Json => at({ ...rest, enum: values(count) });
const constants = (keyword: string, count: number): Json =>
  at({ [keyword]: values(count).map((value) => ({ const: value, title: value })) });
const tagged = (keyword: string, count: number, more: Json = {}): Json =>
  at({
    [keyword]: values(count).map((kind, index) =>
      object(
        { kind: { const: kind }, id: text, [`of${index}`]: whole, ...more },
        { required: ["kind", "id"] },
      ),
    ),
  });
const untagged = (count: number): Json =>
  at({
    anyOf: values(count).map((name) =>
      object({ [name]: text }, { required: [name], additionalProperties: false }),
    ),
  });
const words = (count: number): Json =>
  at({
    ...text,
    pattern: `^(?:${values(count)
      .map((value) => value.replace(" ", "-"))
      .join("|")})$`,
  });
const reversed = (document: Json, keyword: string): Json => {
  const choice = (document["properties"] as Record<string, Json>)["p"]!;
  return at({ ...choice, [keyword]: (choice[keyword] as unknown[]).toReversed() });
};

const WIDE: readonly (readonly [name: string, old: Json, next: Json, broken: string])[] = [
  ["an enum of 999 and one more", listed(999), listed(1_000), "consumer"],
  ["an enum of 1,000 and one less", listed(1_000), listed(999), "producer"],
  ["an enum of 1,000 that becomes any text", listed(1_000, text), at(text), "consumer"],
  ["a text that becomes an enum of 1,000", at(text), listed(1_000, text), "producer"],
  ["an enum of 1,000 in another order", listed(1_000, text), reversed(listed(1_000), "enum"), ""],
  ["a oneOf of 200 constants and one more", constants("oneOf", 200), constants("oneOf", 201), "consumer"],
  ["a oneOf of 200 constants as an enum", constants("oneOf", 200), listed(200), ""],
  ["an anyOf of 300 constants and one less", constants("anyOf", 300), constants("anyOf", 299), "producer"],
  ["50 tagged objects and one more", tagged("oneOf", 50), tagged("oneOf", 51), "consumer"],
  ["51 tagged objects and one less", tagged("anyOf", 51), tagged("anyOf", 50), "producer"],
  [
    "50 tagged objects with a new property each",
    tagged("oneOf", 50),
    tagged("oneOf", 50, { note: text }),
    "",
  ],
  ["200 tagged objects in another order", tagged("oneOf", 200), reversed(tagged("oneOf", 200), "oneOf"), ""],
  ["100 objects without a tag and one more", untagged(100), untagged(101), "consumer"],
  ["a pattern of 80 words and one more", words(80), words(81), "consumer"],
];

test.each(WIDE)("%s: each break is proven in time", (_, old, next, broken) => {
  const { breaks, ms } = compared(old, next);
  const reported = breaks.map(({ side, certainty }) => `${side} ${certainty}`);
  expect(reported.join()).toBe(broken === "" ? "" : `${broken} proven`);
  expect(ms).toBeLessThan(LONGEST_MS);
});

test("the next versions of published schemas are decided", () => {
  const lengths = lengthOf("schema/compatibility/wide");
  const versions = [
    ...someOf(githubVersions(), lengths["versions of GitHub's"]),
    ...someOf(asyncApiVersions(), lengths["versions of AsyncAPI's"]),
  ];
  let [longest, count, cut, unsure] = [0, 0, 0, 0];
  for (const version of versions) {
    const result = ifTaken(() => compared(version.old, version.next));
    if (result === undefined) continue;
    count++;
    const { breaks, ms } = result;
    const { name } = version;
    longest = Math.max(longest, ms);
    expect(ms, name).toBeLessThan(LONGEST_MS);
    if (breaks.some(({ message }) => message.includes("too many steps"))) cut++;
    if (breaks.some(({ certainty }) => certainty === "cannot_prove")) unsure++;
  }
  report("published schemas", {
    "next versions": count,
    "out of steps": cut,
    "with a break that is not proven": unsure,
    "longest ms": longest.toFixed(0),
  });
  expect(count).toBeGreaterThanOrEqual(rounds(3, 80));
  expect(cut).toBeLessThanOrEqual(count / 100);
  expect(unsure).toBeLessThanOrEqual(Math.ceil(count / 20));
}, 120_000);
