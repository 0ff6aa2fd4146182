/**
 * The life of a delivery in hand: it is queued, its attempt is under way, its result is being stored, and it is gone. What comes for
 * a lane that was changed meanwhile is stored as never started at once.
 */
export const LIFE = {
  queued: { started: "sending", excluded: "storing", dropped: "storing" },
  sending: { ended: "storing", excluded: "storing", dropped: "storing", broken: "gone" },
  storing: { stored: "gone" },
  gone: {},
} as const satisfies Record<string, Readonly<Record<string, string>>>;
export type ItemState = keyof typeof LIFE;
/** What happens to an item; only `Schedule` lets it. */
export type ItemEvent = { [S in ItemState]: keyof (typeof LIFE)[S] }[ItemState];

/** How many items are in each state, and the bytes of their payloads. */
export class ItemCounts {
  readonly items: Record<ItemState, number> = { queued: 0, sending: 0, storing: 0, gone: 0 };
  readonly bytes: Record<ItemState, number> = { queued: 0, sending: 0, storing: 0, gone: 0 };

  add(state: ItemState, bytes: number): void {
    this.items[state] += 1;
    this.bytes[state] += bytes;
  }

  move(from: ItemState, to: ItemState, bytes: number): void {
    this.items[from] -= 1;
    this.bytes[from] -= bytes;
    this.add(to, bytes);
  }
}
