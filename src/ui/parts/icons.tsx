/** Line drawings of 16 units. They only stand beside a word or in a labelled button. */
const SHAPES = {
  overview: "M2 13.5h12M3.5 10.5v-3M7 10.5V4M10.5 10.5v-4M13.5 10.5v-8",
  events: "M2.5 4h11M2.5 8h11M2.5 12h7",
  deliveries: "M2 8h9M7.5 4l4 4-4 4M14 3v10",
  subscriptions:
    "M1.75 8a1.75 1.75 0 1 0 3.5 0 1.75 1.75 0 1 0-3.5 0M10.75 3.5a1.75 1.75 0 1 0 3.5 0 1.75 1.75 0 1 0-3.5 0M10.75 12.5a1.75 1.75 0 1 0 3.5 0 1.75 1.75 0 1 0-3.5 0M5.2 7.2l5.6-3M5.2 8.8l5.6 3",
  actions:
    "M6 2.5H4.5a1 1 0 0 0-1 1v3L2 8l1.5 1.5v3a1 1 0 0 0 1 1H6M10 2.5h1.5a1 1 0 0 1 1 1v3L14 8l-1.5 1.5v3a1 1 0 0 1-1 1H10",
  replays: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5V5h2.5",
  tokens: "M2.5 11a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M7 9l6-6M11 5l1.8 1.8",
  audit: "M5.5 5a2.5 2.5 0 1 0 5 0 2.5 2.5 0 1 0-5 0M3 13.5c.6-2.6 2.6-4 5-4s4.4 1.4 5 4",
  doctor: "M1.5 8.5h3l1.5-4 3 7.5 2-5.5 1 2h2.5",
  api: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5M9 3L7 13",
  more: "M3 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M7.5 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0M12 8a.5.5 0 1 0 1 0 .5.5 0 1 0-1 0",
  find: "M2.75 7a4.25 4.25 0 1 0 8.5 0 4.25 4.25 0 1 0-8.5 0M10.2 10.2L14 14",
  copy: "M7 5.5h5a1.5 1.5 0 0 1 1.5 1.5v5a1.5 1.5 0 0 1-1.5 1.5H7A1.5 1.5 0 0 1 5.5 12V7A1.5 1.5 0 0 1 7 5.5M10.5 3.5v-.5a.5.5 0 0 0-.5-.5H3a.5.5 0 0 0-.5.5v7a.5.5 0 0 0 .5.5h.5",
  done: "M3 8.5l3.2 3.2L13 4.8",
  open: "M6 4l4 4-4 4",
  // Its right half is filled by lines beside each other.
  theme: "M2.5 8a5.5 5.5 0 1 0 11 0 5.5 5.5 0 1 0-11 0M8 2.5v11M9.25 3v10M10.5 3.5v9M11.75 4.5v7M13 6.5v3",
} as const;

export type IconName = keyof typeof SHAPES;

export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d={SHAPES[name]} />
  </svg>
);
