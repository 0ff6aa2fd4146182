import { shared } from "./shared.ts";

/** Whether what is shown follows what happens; `since` says when it stopped to. */
export type Live =
  | { readonly state: "live" }
  | { readonly state: "paused"; readonly since: Date }
  | { readonly state: "reconnecting"; readonly since: Date };

export const live = shared<Live>({ state: "live" });

export function toggleLive(): void {
  live.value = live.value.state === "paused" ? { state: "live" } : { state: "paused", since: new Date() };
}

/** A request could not reach the server. A pause that a person asked for stays. */
export function lostConnection(): void {
  if (live.value.state === "live") live.value = { state: "reconnecting", since: new Date() };
}

export function foundConnection(): void {
  if (live.value.state === "reconnecting") live.value = { state: "live" };
}
