import { useEffect } from "preact/hooks";
import { type Query, withQuery } from "../api/resource.ts";
import { shared } from "../api/shared.ts";

/** Where the page is: `#/events/48213?action=order.*`. After the `#`, so that it works beneath any prefix of a proxy. */
export interface Route {
  /** `["events", "48213"]` */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

export const route = shared<Route>(parseRoute(location.hash));
addEventListener("hashchange", follow);

/** The address of what is shown. */
let shown = location.hash;
/** Asks whether what is shown may be left. */
let ask: (() => Promise<boolean>) | undefined;

const warn = (event: Event): void => event.preventDefault();

/** Has a person asked before anything leads elsewhere. @returns what ends it */
export function askBeforeLeaving(question: () => Promise<boolean>): () => void {
  addEventListener("beforeunload", warn);
  ask = question;
  return () => {
    removeEventListener("beforeunload", warn);
    ask = undefined;
  };
}

/** Whether nobody is against leaving what is shown. */
export const mayLeave = async (): Promise<boolean> => ask === undefined || ask();

function follow(): void {
  const wanted = location.hash;
  if (ask !== undefined && wanted !== shown) {
    history.pushState(null, "", shown);
    void leaveFor(wanted);
    return;
  }
  shown = wanted;
  route.value = parseRoute(wanted);
}

async function leaveFor(link: string): Promise<void> {
  if (!(await mayLeave())) return;
  ask = undefined;
  location.hash = link;
}

function parseRoute(text: string): Route {
  const [path = "", query = ""] = text.replace(/^#\/?/, "").split(/\?(.*)/s);
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The link to a screen, record or search. */
export function linkTo(path: readonly (string | number)[], query: Query = {}): string {
  return withQuery(`#/${path.map((part) => encodeURIComponent(part)).join("/")}`, query);
}

/** @param options.replace instead of the entry that the back button leads to: for what a person types */
export function goTo(link: string, options: { readonly replace?: boolean } = {}): void {
  if (link === location.hash) return;
  if (ask !== undefined) return void leaveFor(link);
  if (options.replace === true) history.replaceState(null, "", link);
  else history.pushState(null, "", link);
  follow();
}

/** Changes one part of the query in the place of the address that is shown; `undefined` takes it out. */
export function setQuery({ path, query }: Route, name: string, value: string | undefined): void {
  goTo(linkTo(path, { ...query, [name]: value }), { replace: true });
}

/** One of a few choices, as the address says it; the usual one, where it says nothing. Takes what `Segments` does. */
export function choiceIn<Choice extends string>(
  at: Route,
  name: string,
  choices: Readonly<Record<Choice, string>>,
  usual: NoInfer<Choice>,
) {
  const picked = (Object.keys(choices) as Choice[]).find((one) => one === at.query[name]) ?? usual;
  const pick = (one: Choice): void => setQuery(at, name, one === usual ? undefined : one);
  return { choices, picked, pick };
}

/** What the record is called whose number stands in the address; `null` where the address says it best. */
export const recordName = shared<readonly string[] | null>(null);

/** Names the record that is shown, for the bar and the title. @param parts none of them is known before the record is */
export function useRecordName(...parts: readonly (string | undefined)[]): void {
  useEffect(() => {
    const known = parts.filter((part) => part !== undefined);
    recordName.value = known.length === 0 ? null : known;
    return () => {
      recordName.value = null;
    };
  }, parts);
}
