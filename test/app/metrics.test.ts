import { beforeEach, describe, expect, test } from "vitest";
import { lengthOf } from "../faults/length.ts";
import type { RunningServer } from "../../src/app/server.ts";
import { defaultConfig } from "../../src/config/load.ts";
import type { Schemata } from "../../src/domain/action.ts";
import { ATTEMPT_ERROR_CODES } from "../../src/model/delivery.ts";
import { REFUSAL_REASONS } from "../../src/metrics/counters.ts";
import { type Family, parseMetrics, valueOf } from "../support/prometheus.ts";
import { post } from "../support/post.ts";
import { openReceiver } from "../support/open-receiver.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { dataFolder, LOOPBACK, start } from "./setup.ts";

const bad = { action: "order.placed", payload: {} };

describe("GET /metrics", () => {
  let server: RunningServer;
  let receiver: Receiver;
  let token: string;
  /** All that must not be found in any metric. */
  let secret: string[];

  beforeEach(async () => {
    receiver = await openReceiver();
    server = await start(dataFolder(), { delivery: LOOPBACK });
    token = await tokenWith("admin");
    secret = [token, "order.placed", "kitchen", "invoices", "shop-7", String(receiver.port)];
    await server.evreg.actions.create({
      action: "order.placed",
      application: "shop-7",
      schemata: { type: "object", required: ["id"], properties: { id: { type: "string" } } },
    });
  });

  async function tokenWith(...scopes: string[]): Promise<string> {
    return (await server.evreg.tokens.create({ name: "t", scopes })).data.token;
  }

  async function subscribe(
    subscription: string,
    maxRetries = 5,
    filter: Schemata | null = null,
  ): Promise<number> {
    const { data } = await server.evreg.subscriptions.create({
      application: "kitchen",
      subscription,
      action: "order.placed",
      handler: `${receiver.url}/${subscription}`,
      max_retries: maxRetries,
      filter,
    });
    secret.push(data.secret);
    return data.rowid;
  }

  async function send(path: string, body: unknown, headers: Record<string, string> = {}): Promise<number> {
    const response = await post(server.url + path, body, { authorization: `Bearer ${token}`, ...headers });
    await response.arrayBuffer();
    return response.status;
  }

  async function scrape(): Promise<ReadonlyMap<string, Family>> {
    const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    return parseMetrics(await response.text());
  }

  test("counts exactly what a known run did", async () => {
    receiver.answer = ({ path }) => {
      if (path.endsWith("/ok")) return { status: 204 };
      if (path.endsWith("/no")) return { status: 404 };
      if (path.endsWith("/cut")) return "reset";
      return { status: 500, headers: { "retry-after": "3600" } };
    };
    await subscribe("ok");
    await subscribe("no", 0);
    await subscribe("cut", 0);
    const later = await subscribe("later");
    const muchLater = await subscribe("much-later");
    await subscribe("none", 5, { required: ["no such member"] });

    for (let n = 0; n < 6; n += 1) expect(await send("/v1/events", good(String(n)))).toBe(201);
    const key = { "idempotency-key": "k" };
    expect(await send("/v1/events", good("k"), key)).toBe(201);
    expect(await send("/v1/events", good("k"), key)).toBe(200);
    expect(await send("/v1/events", good("other"), key)).toBe(409);
    expect(await send("/v1/events", bad)).toBe(422);
    expect(await send("/v1/events", { action: "none", payload: {} })).toBe(404);
    expect(await send("/v1/events", "{")).toBe(400);
    expect(await send("/v1/events", good("1"), { "content-type": "text/plain" })).toBe(415);
    expect(await send("/v1/events", good("1"), { authorization: "Bearer x" })).toBe(401);
    const reader = `Bearer ${await tokenWith("read")}`;
    expect(await send("/v1/events", good("1"), { authorization: reader })).toBe(403);
    expect(await send("/v1/events/batch", { events: [] })).toBe(422);
    const again = { ...good("k"), idempotency_key: "k" };
    expect(await send("/v1/events/batch", { events: [good("a"), bad, again, good("b"), 7] })).toBe(207);
    expect(await send("/v1/events/batch?atomic=true", { events: [good("c"), bad, good("d")] })).toBe(422);

    const events = 9;
    await until("all deliveries to have ended or to wait", async () => {
      const counts = await Promise.all(
        (["delivered", "failed", "waiting", "filtered"] as const).map(async (status) => {
          const { data } = await server.evreg.deliveries.list({ status, limit: 500 });
          return data.length;
        }),
      );
      return counts.join() === [events, 2 * events, 2 * events, events].join();
    });
    await server.evreg.subscriptions.update(later, { active: false });
    const [skipped] = (await server.evreg.deliveries.list({ subscription: muchLater, limit: 1 })).data;
    await server.evreg.deliveries.skip(skipped!.rowid);

    const metrics = await scrape();
    const value = (name: string, labels?: Record<string, string>) => valueOf(metrics, name, labels);
    expect(value("evreg_events_published_total", { via: "single" })).toBe(7);
    expect(value("evreg_events_published_total", { via: "batch" })).toBe(2);
    expect(value("evreg_events_replayed_total", { via: "single" })).toBe(1);
    expect(value("evreg_events_replayed_total", { via: "batch" })).toBe(1);
    const refused = Object.fromEntries(
      REFUSAL_REASONS.map((reason) => [reason, value("evreg_events_refused_total", { reason })]),
    );
    expect(refused).toEqual({
      ...Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, 0])),
      conflict: 1,
      // Alone, an empty batch, in a batch (one does not conform, one is no event), in an atomic one.
      invalid: 1 + 1 + 2 + 1,
      not_found: 1,
      malformed: 1,
      unsupported_media_type: 1,
      unauthorized: 1,
      forbidden: 1,
      withheld: 2,
    });

    const queued = (by: string) => value("evreg_deliveries_queued_total", { by });
    expect(["publish", "replay", "retry"].map(queued)).toEqual([6 * events, 0, 0]);
    expect(value("evreg_deliveries_finished_total", { outcome: "delivered" })).toBe(events);
    expect(value("evreg_deliveries_finished_total", { outcome: "failed" })).toBe(2 * events + 1);
    expect(value("evreg_deliveries_finished_total", { outcome: "filtered" })).toBe(events);
    expect(value("evreg_attempts_in_flight")).toBe(0);
    const { maxInFlight, maxInFlightPerSubscription } = defaultConfig("").delivery;
    // What memory and descriptors allow here may be less.
    expect(value("evreg_attempts_in_flight_limit", { of: "service" })).toBeLessThanOrEqual(maxInFlight);
    const ofOne = value("evreg_attempts_in_flight_limit", { of: "subscription" });
    expect(ofOne).toBeGreaterThan(0);
    expect(ofOne).toBeLessThanOrEqual(maxInFlightPerSubscription);
    const attempts = metrics.get("evreg_attempts_total")!.series.filter((one) => one.value > 0);
    expect(attempts.map(({ labels, value: count }) => [Object.values(labels).join(" "), count])).toEqual([
      ["delivered 2xx ", events],
      ["failed 4xx ", events],
      ["failed 5xx ", 2 * events],
      ["failed  connection_reset", events],
    ]);
    expect(value("evreg_attempt_duration_seconds_count")).toBe(5 * events);
    expect(value("evreg_delivery_latency_seconds_count")).toBe(events);
    expect(value("evreg_delivery_latency_seconds_sum")).toBeLessThan(events * 10);

    const backlog = (state: string) => value("evreg_backlog_deliveries", { state });
    expect(["due", "busy", "paced", "waiting", "blocked", "delivering", "held"].map(backlog)).toEqual([
      0,
      0,
      0,
      events - 1,
      0,
      0,
      events,
    ]);
    expect(value("evreg_backlog_counted_fully")).toBe(1);
    expect(value("evreg_backlog_oldest_age_seconds", { state: "due" })).toBe(0);

    expect(value("evreg_store_available")).toBe(1);
    expect(value("evreg_engine_running")).toBe(1);
    expect(
      value("evreg_build_info", { version: "1.2.3", node: process.versions.node, commit: "", date: "" }),
    ).toBe(1);
    // One at least for each publish that was stored, as they came one after the other.
    expect(value("evreg_store_commit_duration_seconds_count")).toBeGreaterThanOrEqual(8);
    expect(value("process_resident_memory_bytes")).toBeGreaterThan(10e6);
    expect(value("process_cpu_seconds_total", { mode: "user" })).toBeGreaterThan(0);
    expect(Math.abs(value("process_start_time_seconds") * 1_000 - performance.timeOrigin)).toBeLessThan(
      1_000,
    );
  });

  test("counts what fails as a person skips it", async () => {
    receiver.answer = () => ({ status: 500, headers: { "retry-after": "3600" } });
    const id = await subscribe("ok", 0);
    await server.evreg.subscriptions.update(id, { ordered: true });
    await send("/v1/events", good("1"));
    const blockedBy = async () => (await server.evreg.subscriptions.get(id)).data.blocked_by;
    await until("it to block", async () => (await blockedBy()) !== null);
    await server.evreg.deliveries.skip((await blockedBy())!);
    expect(valueOf(await scrape(), "evreg_deliveries_finished_total", { outcome: "failed" })).toBe(1);
  });

  test("counts redelivered deliveries by what queued them, without latency", async () => {
    let status = 404;
    receiver.answer = () => ({ status });
    const id = await subscribe("ok", 0);
    for (let n = 0; n < 3; n += 1) await send("/v1/events", good(String(n)));
    const ended = (outcome: string, count: number) =>
      until(`${count} to be ${outcome}`, async () => {
        const metrics = await scrape();
        return valueOf(metrics, "evreg_deliveries_finished_total", { outcome }) === count;
      });
    await ended("failed", 3);
    status = 204;
    await server.evreg.replays.start(id, { from: new Date(0).toISOString(), status: "failed" });
    await ended("delivered", 3);
    await send("/v1/events", good("live"));
    await ended("delivered", 4);
    // Made for the events of the past.
    const late = await subscribe("late");
    await server.evreg.replays.start(late, { from: new Date(0).toISOString(), status: "missed" });
    await ended("delivered", 8);
    const [last] = (await server.evreg.deliveries.list({ limit: 1 })).data;
    await server.evreg.deliveries.retry(last!.rowid);
    await ended("delivered", 9);

    const metrics = await scrape();
    const queued = (by: string) => valueOf(metrics, "evreg_deliveries_queued_total", { by });
    expect(["publish", "replay", "retry"].map(queued)).toEqual([4, 3 + 4, 1]);
    expect(valueOf(metrics, "evreg_delivery_latency_seconds_count")).toBe(1);
  });

  test("always has the same series, and none has a name or a secret in it", async () => {
    const before = linesOf(await scrape());
    receiver.answer = ({ body }) => ({ status: body.includes("1") ? 200 : 418 });
    for (const name of ["invoices", "invoices-2"]) await subscribe(name, 1);
    for (let n = 0; n < 20; n += 1) await send("/v1/events", good(String(n)));
    await send("/v1/events", { action: "no.such-action", payload: {} });
    await receiver.received(40);
    const after = await scrape();
    expect(linesOf(after)).toEqual(before);
    expect(before.length).toBeLessThan(200);
    for (const word of [...secret, "no.such-action", server.url]) expect(before.join()).not.toContain(word);

    const known: Record<string, readonly string[]> = {
      of: ["service", "subscription"],
      via: ["single", "batch", "service"],
      by: ["publish", "replay", "retry"],
      reason: [...REFUSAL_REASONS, "overrun", "restart", "expired", "other_data"],
      outcome: ["delivered", "failed", "filtered", "returned"],
      status_class: ["", "2xx", "3xx", "4xx", "5xx", "other"],
      error_code: ["", ...ATTEMPT_ERROR_CODES],
      state: ["due", "busy", "paced", "waiting", "blocked", "delivering", "held"],
      quantile: ["0.5", "0.99", "1"],
      mode: ["user", "system"],
      version: ["1.2.3"],
      node: [process.versions.node],
      commit: [""],
      date: [""],
    };
    for (const { series } of after.values()) {
      for (const [label, value] of series.flatMap(({ labels }) => Object.entries(labels))) {
        if (label !== "le") expect(known[label], label).toContain(value);
        else expect(value).toMatch(/^(\d+(\.\d+)?|\+Inf)$/);
      }
    }
  });

  test("stays consistent in hundreds of scrapes while events come in", async () => {
    const { scrapes } = lengthOf("app/metrics");
    const AT_ONCE = 20;
    await subscribe("ok");
    const first = await scrape();
    let published = 0;
    for (let round = 0; round < scrapes / AT_ONCE; round += 1) {
      const all = await Promise.all(Array.from({ length: AT_ONCE }, () => scrape()));
      for (const metrics of all) {
        expect([...metrics.keys()]).toEqual([...first.keys()]);
        expect(valueOf(metrics, "evreg_events_published_total", { via: "single" })).toBe(published);
      }
      expect(await send("/v1/events", good(String(round)))).toBe(201);
      published += 1;
    }
    await until("all to be delivered", async () => {
      const metrics = await scrape();
      return valueOf(metrics, "evreg_deliveries_finished_total", { outcome: "delivered" }) === published;
    });
  });
});

function good(id: string): { action: string; payload: { id: string } } {
  return { action: "order.placed", payload: { id } };
}

function linesOf(metrics: ReadonlyMap<string, Family>): string[] {
  return [...metrics.values()].flatMap(({ series }) =>
    series.map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`),
  );
}
