import { type Field, setting } from "../../src/model/field.ts";
import { DURATION } from "../../src/model/kinds.ts";
import { SUBSCRIPTION } from "../../src/model/subscription.ts";

// A setting as a developer would add it: `node --import` loads this before the program, in its threads too.
const jitter_ms = {
  ...setting({
    type: ["integer", "null"],
    minimum: 100,
    maximum: 60_000,
    description: "How they are spread.",
  }),
  only: { mode: "push", why: "a consumer claims when it wants" },
  kind: DURATION,
  title: "Jitter",
  words: (span) => `up to ${span}`,
  flag: { summary: "How far attempts are spread, such as 2s, or none." },
  form: { group: "Order and pace" },
} satisfies Field;
Object.assign(SUBSCRIPTION, { jitter_ms });
