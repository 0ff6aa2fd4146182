import { useRef, useState } from "preact/hooks";
import { ApiError } from "./resource.ts";

const PREFIX = "evreg.draft.";
/** What was typed longest ago is forgotten for what is typed now. */
const MOST_FORMS = 10;
/** A tab stores some 5 million characters, and its token needs room as well. */
const MOST_CHARACTERS = 200_000;

interface Stored<Fields> {
  readonly fields: Fields;
  readonly before: Fields;
  readonly atMs: number;
}

/** What is in the fields of a form, which this tab keeps until it was sent or dropped. */
export interface FormDraft<Fields> {
  readonly fields: Fields;
  /** What the form began with: what others change meanwhile is no change of this person's. */
  readonly before: Fields;
  /** When it was typed, of one that came back. */
  readonly typedAt: Date | undefined;
  readonly change: (part: Partial<Fields>) => void;
  /** Puts into the form what nobody typed, such as a sample, and begins with that. What was typed is forgotten. */
  readonly begin: (part: Partial<Fields>) => void;
  /** Says what a field began with instead: somebody else has changed it, and this person knows. */
  readonly rebase: (part: Partial<Fields>) => void;
  /** Forgets what was typed: the form is as it began. */
  readonly anew: () => void;
  /** Forgets what was typed, as it was sent or is not wanted; the fields show it still. */
  readonly drop: () => void;
}

const typedAtMs = (key: string): number => (JSON.parse(sessionStorage.getItem(key)!) as Stored<unknown>).atMs;

function formsByAge(): readonly string[] {
  return Object.keys(sessionStorage)
    .filter((key) => key.startsWith(PREFIX))
    .toSorted((one, other) => typedAtMs(one) - typedAtMs(other));
}

export const hasDrafts = (): boolean => formsByAge().length > 0;

/** Drops what this person typed, for somebody else who uses this tab. */
export function dropDrafts(): void {
  for (const key of formsByAge()) sessionStorage.removeItem(key);
}

export function readDraft<Fields>(form: string): Stored<Fields> | undefined {
  const text = sessionStorage.getItem(PREFIX + form);
  return text === null ? undefined : (JSON.parse(text) as Stored<Fields>);
}

export function dropDraft(form: string): void {
  sessionStorage.removeItem(PREFIX + form);
}

/** Forgets it instead, where it is as it began. */
export function keepDraft<Fields>(form: string, fields: Fields, before: Fields): void {
  const text = JSON.stringify({ fields, before, atMs: Date.now() } satisfies Stored<Fields>);
  const isNew = sessionStorage.getItem(PREFIX + form) === null;
  if (text.length > MOST_CHARACTERS || JSON.stringify(fields) === JSON.stringify(before)) {
    return dropDraft(form);
  }
  if (isNew) for (const key of formsByAge().slice(0, -(MOST_FORMS - 1))) sessionStorage.removeItem(key);
  sessionStorage.setItem(PREFIX + form, text);
}

const SHOWN_CHARACTERS = 80;

/**
 * Two who change the same field are told of each other; sent once more, it replaces what the other has set.
 * @param now what the form would begin with now
 * @param names of the fields that are sent
 * @throws ApiError
 */
export function refuseConflict<Fields extends object>(
  { fields, before, rebase }: Pick<FormDraft<Fields>, "fields" | "before" | "rebase">,
  now: { readonly [Name in keyof Fields]: Exclude<Fields[Name], undefined> },
  names = Object.keys(now) as unknown as readonly (keyof Fields & string)[],
): void {
  const field = names.find(
    (name) => fields[name] !== before[name] && now[name] !== before[name] && now[name] !== fields[name],
  );
  if (field === undefined) return;
  rebase({ [field]: now[field] } as unknown as Partial<Fields>);
  const text = String(now[field]);
  const shown = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  const done = text === "" ? "emptied it" : `set it to ${shown}`;
  const message = `Somebody else has ${done} meanwhile. Send it again to replace that.`;
  throw new ApiError(409, message, { field });
}

/**
 * The fields of a form. What is typed into them survives a reload, another screen and the end of a sign-in.
 * @param form its name in this tab; another form is another component
 * @param kept what of the fields may be stored: no secrets
 */
export function useDraft<Fields extends object>(
  form: string,
  start: () => Fields,
  kept: (fields: Fields) => Fields = (fields) => fields,
): FormDraft<Fields> {
  const [state, setState] = useState<Pick<FormDraft<Fields>, "fields" | "before" | "typedAt">>(() => {
    const stored = readDraft<Fields>(form);
    const fresh = start();
    if (stored === undefined) return { fields: fresh, before: fresh, typedAt: undefined };
    return {
      fields: { ...fresh, ...stored.fields },
      before: { ...fresh, ...stored.before },
      typedAt: new Date(stored.atMs),
    };
  });
  // Two changes may come before the form is drawn again.
  const latest = useRef(state);
  const put = (part: Partial<typeof state>): void => {
    const next = { ...latest.current, ...part };
    latest.current = next;
    setState(next);
    keepDraft(form, kept(next.fields), kept(next.before));
  };
  const begin = (part: Partial<Fields>): void => {
    const fields = { ...latest.current.fields, ...part };
    put({ fields, before: fields, typedAt: undefined });
  };
  return {
    ...state,
    change: (part) => put({ fields: { ...latest.current.fields, ...part } }),
    rebase: (part) => put({ before: { ...latest.current.before, ...part } }),
    begin,
    anew: () => begin(start()),
    drop: () => begin({}),
  };
}

/**
 * The field of a form that a failure is about, and what is wrong with it: `headers["X-A"]` is about `headers`. Beside its field the
 * rule alone says it.
 * @param names fields that have another name in the form, by that of the API
 */
export function wrongField<Fields extends object>(
  { message, details }: ApiError,
  fields: Fields,
  names: Readonly<Record<string, keyof Fields>> = {},
): { readonly field: keyof Fields | undefined; readonly message: string } {
  const { field: place, message: rule } = details;
  const [name = ""] = typeof place === "string" ? place.split(/[.[]/) : [];
  const field = Object.hasOwn(names, name) ? names[name]! : name;
  if (!Object.hasOwn(fields, field)) return { field: undefined, message };
  const isPlain = place === name && typeof rule === "string";
  return { field: field as keyof Fields, message: isPlain ? `It ${rule}.` : message };
}
