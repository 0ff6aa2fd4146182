import { expect, it } from "vitest";
import { type Shard, shardOf, SHARDS, shareShards } from "../../../src/store/rules/shards.ts";

/** The shards after all nodes have done their parts in turn until none has anything to do; whoever leaves a shard gives it up at once. */
function shared(before: readonly Shard[], nodes: readonly string[]): readonly Shard[] {
  let shards = before;
  for (let isDone = false; !isDone;) {
    isDone = true;
    for (const node of nodes) {
      const { taken, leaving } = shareShards(nodes, shards, node);
      isDone &&= taken.length + leaving.length === 0;
      shards = shards.map((shard) => {
        if (taken.includes(shard.id)) return { ...shard, node };
        return leaving.includes(shard.id) ? { ...shard, node: null } : shard;
      });
    }
  }
  return shards;
}

const NONE: readonly Shard[] = Array.from({ length: SHARDS }, (_, id) => ({
  id,
  node: null,
  isLeaving: false,
}));

function countOf(shards: readonly Shard[], subscriptions: readonly number[]): readonly number[] {
  const owners = subscriptions.map((subscription) => shards[shardOf(subscription)]!.node);
  return [...Map.groupBy(owners, (owner) => owner).values()].map(({ length }) => length);
}

it("gives each node its part of the first subscriptions, whether nodes came together, one by one, or some ended", () => {
  const first = Array.from({ length: 12 }, (_, index) => index + 1);
  expect(countOf(shared(NONE, ["a", "b"]), first)).toEqual([6, 6]);
  const oneByOne = shared(shared(NONE, ["a"]), ["a", "b"]);
  expect(countOf(oneByOne, first)).toEqual([6, 6]);
  const three = shared(oneByOne, ["a", "b", "c"]);
  for (const count of countOf(three, first)) expect(count).toBeGreaterThanOrEqual(2);
  const without = three.map(({ id, node }) => ({ id, node: node === "a" ? null : node, isLeaving: false }));
  for (const count of countOf(shared(without, ["b", "c"]), first)) expect(count).toBeGreaterThanOrEqual(4);
});
