import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { publish } from "../support/records.ts";
import { words } from "../support/words.ts";
import { failed, subscribe } from "./filled.ts";
import { settled, useWorld, visit } from "./harness.ts";

// What a limited token is shown: nothing that it may not do, and in words what it may not see.

const world = useWorld({
  dev: false,
  changes: { delivery: { allowHttp: true, allowNetworks: ["127.0.0.1/32"] } },
  async prepare(evreg) {
    for (const application of ["shop", "bank"]) {
      const action = `${application}.created`;
      await evreg.actions.create({ action, application, schemata: { type: "object" } });
      await subscribe(evreg, "mail", { application, action, max_retries: 0 });
      await publish(evreg, action);
    }
    await failed(evreg, 2);
  },
});

const ADDRESSES = words(`
  #/ #/events #/events/1 #/deliveries #/deliveries/1 #/replays #/tokens #/tokens/new #/audit #/doctor
  #/subscriptions #/subscriptions/1 #/subscriptions/1/edit #/subscriptions/new #/api/createSubscription
  #/actions #/actions/shop.created #/actions/shop.created/publish #/actions?create=one
`);
/** Of which a token that may not read sees nothing. */
const SOME = ["#/", "#/events/1", "#/subscriptions/new", "#/tokens/new"];
/** What changes something, by the scope that it needs; a check may be begun and not ended by whoever only reads. */
const ACTS: readonly (readonly [scope: string, names: RegExp])[] = [
  [
    "write",
    /^(?:Create an? (?:action|subscription)|Create it|Save|Test|Replay…|Pause|Resume|Edit|Rotate|Delete)/,
  ],
  ["write", /^(?:Send (?:again|them again|all again)|Give up|Pick|Settings|Retire|Deprecate|Send POST)/],
  ["publish", /^Publish it/],
  ["admin", /^(?:Create a token|Revoke|Check again)/],
];
const READS = words("#/ #/overview #/events #/deliveries #/subscriptions #/actions #/replays #/api");

/** Each token: the scopes, what its navigation offers, and which acts there are for it. */
const TOKENS: readonly (readonly [scopes: string, screens: readonly string[], acts: readonly string[]])[] = [
  ["publish", ["#/"], []],
  ["listen", ["#/"], []],
  ["write", ["#/"], []],
  ["read", READS, []],
  ["read:shop", READS, []],
  ["read:bank", READS, []],
  ["read:shop publish:shop", READS, ["publish"]],
  ["read:shop write:shop", READS, ["write"]],
  ["admin:shop", READS, ["write", "publish"]],
];

async function namesIn(page: Page): Promise<readonly string[]> {
  const usable = page.locator("main :is(a, button, summary, input[type=checkbox])");
  const names = await usable.evaluateAll((all) =>
    all.map((one) => one.getAttribute("aria-label") ?? one.textContent),
  );
  return names.map((name) => name.trim());
}

test.each(TOKENS)(
  "a token with %s is offered nothing else, and refused nothing",
  { timeout: 180_000 },
  async (scopes, screens, acts) => {
    const made = await world.evreg.tokens.create({ name: "limited", scopes: scopes.split(" ") });
    // Records of another application are not there for it, and a refusal is a fault.
    const page = await world.open("", { token: made.data.token, expected: /status of 404/ });
    await settled(page);
    const offered = await page
      .locator('nav a[href^="#/"]')
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    expect([...new Set(offered)]).toEqual(screens);
    const seen = new Set<string>();
    for (const address of screens.length === 1 ? SOME : ADDRESSES) {
      await visit(page, address);
      expect(await page.locator("main").innerText()).not.toBe("");
      for (const name of await namesIn(page)) {
        for (const [scope, act] of ACTS)
          if (act.test(name) && !acts.includes(scope)) seen.add(`${address}: ${name}`);
      }
    }
    expect([...seen]).toEqual([]);
  },
);
