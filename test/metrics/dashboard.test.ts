import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openLocalService } from "../support/local-service.ts";
import { type Family, parseMetrics } from "../support/prometheus.ts";

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const dashboard = JSON.parse(
  readFileSync(new URL("../../docs/grafana/evreg.json", import.meta.url), "utf8"),
) as { readonly panels: readonly Panel[] };
const targets = dashboard.panels.flatMap(({ title, targets: own = [] }) =>
  own.map((target) => ({ title, ...target })),
);

/** What Prometheus adds by itself. */
const ADDED_LABELS = ["instance"];

async function families(): Promise<ReadonlyMap<string, Family>> {
  const local = await openLocalService();
  try {
    return parseMetrics(await local.evreg.metrics());
  } finally {
    await local.close();
  }
}

test("the dashboard shows exactly the metrics that evreg has", async () => {
  const known = await families();
  const shown = new Set<string>();
  expect(targets.length).toBeGreaterThan(20);
  for (const { title, expr, legendFormat } of targets) {
    const names = expr.match(/\b(?:evreg|process|nodejs)_\w+/g) ?? [];
    expect(names.length, title).toBeGreaterThan(0);
    const used = names.map((name) => {
      const family = known.get(name) ?? known.get(name.replace(/_(bucket|sum|count)$/, ""));
      expect(family, `${title}: ${name}`).toBeDefined();
      expect(family?.type === "histogram", name).toBe(!known.has(name));
      shown.add(family!.name);
      return family!;
    });
    const labels = new Set(used.flatMap(({ series }) => series.flatMap((one) => Object.keys(one.labels))));
    const asked = [
      ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", ")),
      ...[...expr.matchAll(/[{,] ?(\w+)(?:=~|!~|!=|=)"/g)].map(([, label = ""]) => label),
      ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label),
    ];
    for (const label of asked) expect([...labels, ...ADDED_LABELS], `${title}: ${label}`).toContain(label);
    for (const name of names) {
      const isCounted = /_(total|bucket|sum|count)$/.test(name);
      expect(new RegExp(`(rate|increase)\\(${name}`).test(expr), `${title}: ${name}`).toBe(isCounted);
    }
  }
  expect([...known.keys()].filter((name) => !shown.has(name))).toEqual([]);
});
