import * as fc from "fast-check";
import { expect, test } from "vitest";
import { lengthOf } from "../../faults/length.ts";
import { escapeControlKeepingLines } from "../../../src/cli/io/text.ts";
import { exported, exportText, registryOf } from "../../../src/cli/registry/export.ts";
import type { NewAction } from "../../../src/domain/action.ts";
import type { NewSubscription, Subscription } from "../../../src/domain/subscription.ts";
import type { Evreg } from "../../../src/evreg.ts";
import { openLocalService } from "../../support/local-service.ts";
import { declaredBy, doSteps, planOf } from "./setup.ts";

const lengths = lengthOf("cli/registry/export");

/** Texts that YAML could take for something else, or that need quoting. */
const oddText = fc.constantFrom(
  ...'yes null ~ 1e3 0x1F #c it\'s "q" é😀 << *a &a !t 2026-01-01 [x] %d @ ` a/b .. .schema Shop shop ='.split(
    " ",
  ),
  "- a",
  "a: b",
);
const label = fc.oneof(oddText, fc.stringMatching(/^[a-zA-Z][a-z0-9 ._-]{0,10}[a-z0-9]$/));
const text = fc.oneof(
  oddText,
  fc.string({ maxLength: 12 }),
  fc.constantFrom("two\nlines\n", "\ttab", " space "),
  fc.constantFrom("\u009b31m", "a\u202eb", "\u200fc: \ufeffd\n", "\u007f\u001b[2J"),
);
const schema = fc.record(
  {
    type: fc.constant("object"),
    title: text,
    properties: fc.dictionary(
      fc.oneof(label, fc.constantFrom("__proto__", "<<")),
      fc.record(
        {
          type: fc.constantFrom("string", "integer", ["string", "null"]),
          enum: fc.uniqueArray(
            fc.oneof(
              text,
              fc.integer(),
              fc.double({ noNaN: true, noDefaultInfinity: true }),
              fc.constant(null),
              fc.boolean(),
            ),
            { minLength: 1, maxLength: 4, selector: (value) => JSON.stringify(value) },
          ),
          default: fc.jsonValue({ maxDepth: 2 }),
        },
        { requiredKeys: [] },
      ),
      { maxKeys: 4 },
    ),
  },
  { requiredKeys: ["type"] },
);
const anySettings = fc.record(
  {
    max_retries: fc.integer({ min: 0, max: 20 }),
    active: fc.boolean(),
    bearer: fc.constantFrom("secret" as const, "none" as const),
    bearer_token: fc.constant("a-value-of-its-own"),
    filter: fc.option(schema),
    rate_limit: fc.option(fc.constantFrom(0.01, 2.5, 10_000)),
    max_in_flight: fc.option(fc.integer({ min: 1, max: 1_000 })),
    timeout_ms: fc.option(fc.integer({ min: 100, max: 60_000 })),
    headers: fc.option(
      fc.dictionary(fc.stringMatching(/^X-[a-z]{1,8}$/), fc.stringMatching(/^[!-~]{0,12}$/), {
        maxKeys: 3,
      }),
    ),
    retry_schedule: fc.option(
      fc.array(fc.integer({ min: 0, max: 604_800_000 }), { minLength: 1, maxLength: 20 }),
    ),
    ordered: fc.boolean(),
  },
  { requiredKeys: [] },
);

interface Model {
  readonly actions: readonly { readonly application: string; readonly schemata: object }[];
  readonly subscriptions: readonly ({
    readonly application: string;
    readonly subscription: string;
    readonly of: number;
  } & object)[];
}

const model: fc.Arbitrary<Model> = fc.record({
  actions: fc.array(fc.record({ application: label, schemata: schema }), { minLength: 1, maxLength: 4 }),
  subscriptions: fc.array(
    fc
      .tuple(fc.record({ application: label, subscription: label, of: fc.nat() }), anySettings)
      .map(([names, more]) => Object.assign(names, more)),
    { maxLength: 5 },
  ),
});

/** Where its deliveries go: some without what only handlers have are claimed by consumers. */
function placeOf(given: object): Pick<Subscription, "mode" | "handler"> {
  const isOfPush = ["rate_limit", "max_in_flight", "timeout_ms"].some(
    (name) => (given as Record<string, unknown>)[name] !== undefined,
  );
  const isPull = !isOfPush && "headers" in given;
  return isPull ? { mode: "pull", handler: null } : { mode: "push", handler: "https://a.example/x" };
}

/** Puts it into an evreg; what the service itself refuses is left out. */
async function fill(evreg: Evreg, { actions, subscriptions }: Model): Promise<number> {
  let made = 0;
  for (const [index, action] of actions.entries()) {
    await evreg.actions.create({ ...action, action: `a${index}.made` } as NewAction);
    made += 1;
  }
  for (const { of, ...input } of subscriptions) {
    const action = `a${of % actions.length}.made`;
    const named: Record<string, unknown> = { ...input, action, ...placeOf(input) };
    if (named["bearer_token"] !== undefined) delete named["bearer"];
    const created = await evreg.subscriptions
      .create(named as unknown as NewSubscription)
      .catch((error: Error) => error);
    if (created instanceof Error) expect(created.message).toMatch(/already/);
    else made += 1;
  }
  return made;
}

test.each(["yaml", "json"] as const)(
  "an export as %s changes nothing where it was made, and recreates the registry elsewhere",
  async (format) => {
    await fc.assert(
      fc.asyncProperty(model, async (input) => {
        const [here, there] = [await openLocalService(), await openLocalService()];
        try {
          const made = await fill(here.evreg, input);
          const { actions, subscriptions, retries } = await registryOf(here.evreg);
          const written = exportText(exported({ actions, subscriptions, retries }), format);
          expect(escapeControlKeepingLines(written)).toBe(written);
          expect(written).not.toMatch(/rowid|timestamped|whsec_|a-value-of-its-own/);
          const turned = {
            actions: actions.toReversed(),
            subscriptions: subscriptions.toReversed(),
            retries,
          };
          expect(exportText(exported(turned), format)).toBe(written);
          const name = `export.${format}`;
          const none = { steps: [], unchanged: made, problems: [] };
          expect(await planOf(here.evreg, written, { name, prune: true })).toMatchObject(none);

          // The value of a bearer of its own is in no file.
          const takenOver = written.replaceAll(/(bearer"?: "?)own/g, "$1none");
          await doSteps(there.evreg, await planOf(there.evreg, takenOver, { name }));
          expect(exportText(exported(await registryOf(there.evreg)), format)).toBe(takenOver);
        } finally {
          await Promise.all([here.close(), there.close()]);
        }
      }),
      { numRuns: lengths.registries },
    );
  },
  120_000,
);

test("an empty registry gives a file that declares nothing", async () => {
  const declared = await declaredBy(exportText({ actions: [], subscriptions: [] }, "yaml"));
  expect(declared).toEqual({ actions: [], subscriptions: [], problems: [] });
});
