import type { JSX } from "preact";

/** Line drawings of 16 units. They only stand beside a word or in a labelled button. */
const SHAPES = {
  overview: <path d="M2 13.5h12M3.5 10.5v-3M7 10.5V4M10.5 10.5v-4M13.5 10.5v-8" />,
  events: <path d="M2.5 4h11M2.5 8h11M2.5 12h7" />,
  deliveries: <path d="M2 8h9M7.5 4l4 4-4 4M14 3v10" />,
  subscriptions: (
    <>
      <circle cx="3.5" cy="8" r="1.75" />
      <circle cx="12.5" cy="3.5" r="1.75" />
      <circle cx="12.5" cy="12.5" r="1.75" />
      <path d="M5.2 7.2l5.6-3M5.2 8.8l5.6 3" />
    </>
  ),
  actions: (
    <path d="M6 2.5H4.5a1 1 0 0 0-1 1v3L2 8l1.5 1.5v3a1 1 0 0 0 1 1H6M10 2.5h1.5a1 1 0 0 1 1 1v3L14 8l-1.5 1.5v3a1 1 0 0 1-1 1H10" />
  ),
  replays: <path d="M3 8a5 5 0 1 0 1.6-3.7M3 2.5V5h2.5" />,
  tokens: (
    <>
      <circle cx="5" cy="11" r="2.5" />
      <path d="M7 9l6-6M11 5l1.8 1.8" />
    </>
  ),
  audit: (
    <>
      <circle cx="8" cy="5" r="2.5" />
      <path d="M3 13.5c.6-2.6 2.6-4 5-4s4.4 1.4 5 4" />
    </>
  ),
  doctor: <path d="M1.5 8.5h3l1.5-4 3 7.5 2-5.5 1 2h2.5" />,
  api: <path d="M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5M9 3L7 13" />,
  more: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2.5" />,
  find: (
    <>
      <circle cx="7" cy="7" r="4.25" />
      <path d="M10.2 10.2L14 14" />
    </>
  ),
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 3.5v-.5a.5.5 0 0 0-.5-.5H3a.5.5 0 0 0-.5.5v7a.5.5 0 0 0 .5.5h.5" />
    </>
  ),
  done: <path d="M3 8.5l3.2 3.2L13 4.8" />,
  open: <path d="M6 4l4 4-4 4" />,
  back: <path d="M10 4L6 8l4 4" />,
  theme: (
    <>
      <circle cx="8" cy="8" r="5.5" />
      <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" fill="currentColor" />
    </>
  ),
} satisfies Readonly<Record<string, JSX.Element>>;

export type IconName = keyof typeof SHAPES;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      {SHAPES[name]}
    </svg>
  );
}
