import { expect, test } from "vitest";
import { type Shard, SHARDS, shardOf, shareShards } from "../../../src/store/rules/shards.ts";
import { lengthOf } from "../../faults/length.ts";

const { shards: COUNT, nodes: MAX_NODES } = lengthOf("store/rules/shards");

/** Nodes that share shards as they do in a database, one turn after the other. */
class Fleet {
  readonly nodes = new Set<string>();
  shards: Shard[];
  /** Shards that have changed their node. */
  moved = 0;
  #named = 0;

  constructor(count = COUNT) {
    this.shards = Array.from({ length: count }, (_, id) => ({ id, node: null, isLeaving: false }));
  }

  join(): string {
    const node = `n${String((this.#named += 1)).padStart(3, "0")}`;
    this.nodes.add(node);
    return node;
  }

  /** What a node had is free once the others take it for dead. */
  die(node: string): void {
    this.nodes.delete(node);
    this.shards = this.shards.map((one) =>
      one.node === node ? { ...one, node: null, isLeaving: false } : one,
    );
  }

  #free(which: (shard: Shard) => boolean): void {
    for (const shard of this.shards.filter(which)) Object.assign(shard, { node: null, isLeaving: false });
  }

  /** Each node does its part once. @returns how many changes there were */
  turn(): number {
    let changes = 0;
    for (const node of this.nodes) {
      // Nothing is under way of those that it leaves.
      this.#free((shard) => shard.node === node && shard.isLeaving);
      const { taken, leaving } = shareShards([...this.nodes], this.shards, node);
      for (const id of taken) Object.assign(this.shards[id]!, { node, isLeaving: false });
      for (const id of leaving) Object.assign(this.shards[id]!, { isLeaving: true });
      changes += taken.length + leaving.length;
      this.moved += taken.length;
    }
    return changes;
  }

  /** @returns how many turns it took until nothing changed */
  settle(): number {
    for (let turns = 0; turns < 100; turns += 1) if (this.turn() === 0) return turns;
    throw new Error("The nodes do not come to an end.");
  }

  get counts(): readonly number[] {
    const held = Map.groupBy(this.shards, ({ node }) => node);
    return [...this.nodes].map((node) => held.get(node)?.length ?? 0);
  }
}

test(`up to ${MAX_NODES} nodes have as many of ${COUNT} shards as each other, or one more`, () => {
  const fleet = new Fleet();
  for (let joined = 0; joined < MAX_NODES; joined += 1) {
    fleet.join();
    expect(fleet.settle()).toBeLessThanOrEqual(3);
    expect(Math.max(...fleet.counts) - Math.min(...fleet.counts)).toBeLessThanOrEqual(1);
  }
  expect(fleet.shards.every(({ node }) => node !== null)).toBe(true);
});

test("a node that comes or goes moves no more than its share", () => {
  const fleet = new Fleet();
  const nodes = Array.from({ length: 10 }, () => fleet.join());
  fleet.settle();
  fleet.moved = 0;
  fleet.join();
  fleet.settle();
  expect(fleet.moved).toBeLessThanOrEqual(Math.ceil(COUNT / 11));
  fleet.moved = 0;
  fleet.die(nodes[4]!);
  fleet.settle();
  expect(fleet.moved).toBeLessThanOrEqual(Math.ceil(COUNT / 10));
});

test("under churn each shard has one node at most, and all are even again once it ends", () => {
  const fleet = new Fleet();
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let step = 0; step < 300; step += 1) {
    if (fleet.nodes.size < 3 || (fleet.nodes.size < MAX_NODES && random(2) === 0)) fleet.join();
    else fleet.die([...fleet.nodes][random(fleet.nodes.size)]!);
    fleet.turn();
    expect(fleet.shards.every(({ node }) => node === null || fleet.nodes.has(node))).toBe(true);
  }
  fleet.settle();
  expect(Math.max(...fleet.counts) - Math.min(...fleet.counts)).toBeLessThanOrEqual(1);
});

test("a node takes back what it was about to leave before it takes others", () => {
  const shards: Shard[] = [
    { id: 0, node: "a", isLeaving: true },
    { id: 1, node: null, isLeaving: false },
    { id: 2, node: "a", isLeaving: false },
    { id: 3, node: "b", isLeaving: false },
  ];
  expect(shareShards(["a", "b"], shards, "a")).toEqual({ taken: [0], leaving: [] });
  expect(shareShards(["a", "b"], shards, "b")).toEqual({ taken: [1], leaving: [] });
});

test("a subscription has the same shard in each version, as nodes of two versions work side by side", () => {
  expect([1, 127, 128, 300].map(shardOf)).toEqual([1, 127, 0, 44]);
});

test("each node has its part of the first subscriptions, whether nodes come one by one or end", () => {
  const fleet = new Fleet(SHARDS);
  const parts = (): readonly number[] => {
    const owners = Array.from({ length: 12 }, (_, index) => fleet.shards[shardOf(index + 1)]!.node);
    return [...Map.groupBy(owners, (node) => node).values()].map(({ length }) => length);
  };
  const first = fleet.join();
  fleet.settle();
  fleet.join();
  fleet.settle();
  expect(parts()).toEqual([6, 6]);
  fleet.join();
  fleet.settle();
  for (const count of parts()) expect(count).toBeGreaterThanOrEqual(2);
  fleet.die(first);
  fleet.settle();
  for (const count of parts()) expect(count).toBeGreaterThanOrEqual(4);
});
