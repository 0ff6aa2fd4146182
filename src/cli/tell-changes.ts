import type { Evreg } from "../evreg.ts";

/** The parts of the port that are one noun's operations. */
type Noun = {
  [K in keyof Evreg]: Evreg[K] extends (...args: never[]) => unknown ? never : K;
}[keyof Evreg];

/** Which operations change something; the compiler holds the list complete. */
const CHANGES: { readonly [N in Noun]: { readonly [M in keyof Evreg[N]]: boolean } } = {
  actions: {
    list: false,
    create: true,
    get: false,
    update: true,
    revisions: false,
    revision: false,
    check: false,
  },
  events: { publish: true, publishBatch: true, list: false, get: false, deliveries: false },
  subscriptions: { list: false, create: true, get: false, update: true, rotateSecret: true, delete: true },
  deliveries: { list: false, get: false, retry: true, skip: true },
  replays: { count: false, start: true, list: false, get: false, cancel: true },
  tokens: { list: false, create: true, revoke: true },
};

type Method = (...args: unknown[]) => unknown;

/** The same port, which calls `tell` before the first operation that changes something. */
export function tellChanges(evreg: Evreg, tell: () => void): Evreg {
  let told = false;
  const telling = (port: object, changes: object) => {
    const methods = Object.entries(port as Record<string, Method>).map(([name, method]) => [
      name,
      (changes as Record<string, boolean>)[name] !== true
        ? method
        : (...args: unknown[]) => {
            if (!told) tell();
            told = true;
            return method(...args);
          },
    ]);
    return Object.fromEntries(methods) as object;
  };
  const nouns = Object.entries(CHANGES).map(([noun, changes]) => [
    noun,
    telling(evreg[noun as Noun], changes),
  ]);
  return { ...evreg, ...Object.fromEntries(nouns) } as Evreg;
}
