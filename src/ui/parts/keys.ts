import { useEffect, useRef } from "preact/hooks";
import { shared } from "../api/shared.ts";

export interface Key {
  /** The key as `KeyboardEvent.key`, or two in a row: `g e`. */
  readonly key: string;
  readonly what: string;
  readonly run: () => void;
}

const SETTING = "evreg.keys";
/** Single letters can be turned off: they hinder people who speak to their computer. */
export const lettersAct = shared(localStorage.getItem(SETTING) !== "off");

export function setLetters(on: boolean): void {
  lettersAct.value = on;
  localStorage.setItem(SETTING, on ? "on" : "off");
}

/** The lists of all components that are shown, the newest last: that one is asked first. */
const shown: { current: readonly Key[] }[] = [];
const SECOND_KEY_MS = 1_200;
let first = { key: "", at: 0 };

/** Keys that act while the component is shown. */
export function useKeys(keys: readonly Key[]): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    shown.push(latest);
    return () => void shown.splice(shown.indexOf(latest), 1);
  }, []);
}

/** All that act now. */
export function keysNow(): readonly Key[] {
  const byKey = new Map(shown.flatMap(({ current }) => current.map((key) => [key.key, key] as const)));
  return [...byKey.values()];
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  if (event.metaKey || event.ctrlKey) {
    if (event.key.toLowerCase() === "k") act("find", event);
    return;
  }
  const isField =
    event.target instanceof Element &&
    event.target.closest("input, textarea, select, [contenteditable]") !== null;
  const inDialog = document.querySelector("dialog[open]") !== null;
  if (isField || inDialog || !lettersAct.value) return;
  const twice = event.timeStamp - first.at < SECOND_KEY_MS ? `${first.key} ${event.key}` : "";
  first = { key: event.key, at: event.timeStamp };
  if (twice !== "" && act(twice, event)) first.at = 0;
  else act(event.key, event);
});

function act(name: string, event: KeyboardEvent): boolean {
  const key = keysNow().find((candidate) => candidate.key === name);
  if (key === undefined) return false;
  event.preventDefault();
  key.run();
  return true;
}
