import { beforeEach, describe, expect, it } from "vitest";
import { Tempo } from "../../src/delivery/store-calls.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("the tempo at which the store is asked", () => {
  let time: ManualClock;
  let tempo: Tempo;
  let turns: number[];
  beforeEach(() => {
    time = new ManualClock(0);
    tempo = new Tempo(time);
    turns = [];
  });
  const turn = async (): Promise<void> => {
    await tempo.turn();
    turns.push(time.now());
  };

  it("is at once while there is little to do", async () => {
    for (let ms = 1; ms <= 30; ms += 1) {
      await time.advance(1);
      tempo.note(1);
      void turn();
    }
    await time.advance(0);
    expect(turns).toHaveLength(30);
    expect(time.pending).toBe(0);
  });

  it("is a beat for all under load, and at once again when that is over", async () => {
    await turn();
    await time.advance(20);
    tempo.note(1_000);
    await turn();
    await time.advance(1);
    void turn();
    await time.advance(2);
    void turn();
    expect(turns).toEqual([0, 20]);
    await time.advance(2);
    expect(turns).toEqual([0, 20, 25, 25]);
    await time.advance(20);
    await turn();
    await turn();
    expect(turns.slice(4)).toEqual([45, 45]);
  });
});
