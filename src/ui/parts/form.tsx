import { Button } from "./button.tsx";
import { type ComponentChildren, toChildArray } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { FormDraft } from "../api/drafts.ts";
import type { ApiError } from "../api/request.ts";
import { Time } from "./time.tsx";

/** What is wrong, said at once to those who hear the page. */
export function Wrong({ text }: { readonly text: string | undefined }) {
  if (text === undefined || text === "") return null;
  return (
    <p class="danger-text" role="alert">
      {text}
    </p>
  );
}

/** The first field that something is said to be wrong with. */
function firstWrong(form: HTMLFormElement): HTMLElement | undefined {
  const rows = [...form.querySelectorAll(".form-row:has([role=alert])")];
  const fields = rows.map(
    (row) =>
      row.querySelector<HTMLElement>("input:checked") ??
      row.querySelector<HTMLElement>("input, textarea, select"),
  );
  return fields.find((field) => field !== null) ?? undefined;
}

/**
 * Fields with a button that sends them. The server judges them, and the page says it beside each; the first wrong one gets
 * the focus, unless somebody types on meanwhile.
 */
export function Form(props: {
  readonly class?: string;
  readonly send: () => void;
  readonly children: ComponentChildren;
}) {
  const form = useRef<HTMLFormElement>(null);
  const isSent = useRef(false);
  useEffect(() => {
    const wrong = isSent.current && form.current !== null ? firstWrong(form.current) : undefined;
    if (wrong === undefined) return;
    isSent.current = false;
    wrong.focus();
  });
  return (
    <form
      ref={form}
      class={props.class ?? "form"}
      noValidate
      onInput={() => {
        isSent.current = false;
      }}
      onSubmit={(event) => {
        event.preventDefault();
        isSent.current = true;
        props.send();
      }}
    >
      {props.children}
    </form>
  );
}

/** Names, JSON and codes: nothing corrects them. */
export const EXACT = { autoComplete: "off", spellcheck: false } as const;

/** A label, what is typed or picked beneath it, what it means, and what is wrong with it. */
export function Field(props: {
  readonly label: string;
  readonly children: (names: {
    readonly id: string;
    readonly "aria-describedby": string;
  }) => ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
}) {
  const id = useId();
  const about = `${id}-about`;
  return (
    <div class="form-row">
      <label for={id}>{props.label}</label>
      <div>
        {props.children({ id, "aria-describedby": about })}
        <div id={about}>
          <Wrong text={props.error} />
          {props.hint !== undefined && <p class="hint">{props.hint}</p>}
        </div>
      </div>
    </div>
  );
}

interface FieldProps<Value> {
  readonly label: string;
  readonly value: Value;
  readonly set: (value: Value) => void;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
}

/** One line of text. @param props.mono for what is exact: names, addresses, numbers with units */
export function TextField(
  props: FieldProps<string> & {
    readonly placeholder?: string;
    readonly required?: boolean;
    readonly secret?: boolean;
    readonly list?: readonly string[];
    readonly type?: "url" | "datetime-local";
    readonly mode?: "numeric" | "decimal" | undefined;
  },
) {
  const { label, value, set, hint, error, placeholder, list } = props;
  const options = useId();
  return (
    <Field label={label} hint={hint} error={error}>
      {(names) => (
        <span class="field">
          <input
            {...names}
            type={(props.secret === true ? "password" : props.type) as "text"}
            step={props.type === "datetime-local" ? 1 : undefined}
            inputMode={props.mode}
            value={value}
            required={props.required}
            aria-invalid={error !== undefined}
            {...EXACT}
            placeholder={placeholder}
            list={list === undefined ? undefined : options}
            onInput={(event) => set(event.currentTarget.value)}
          />
          {list !== undefined && (
            <datalist id={options}>
              {list.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </span>
      )}
    </Field>
  );
}

/** Several lines of text: JSON, headers. */
export function AreaField(
  props: FieldProps<string> & {
    readonly placeholder?: string;
    readonly rows?: number;
  },
) {
  const { label, value, set, hint, error, placeholder, rows } = props;
  return (
    <Field label={label} hint={hint} error={error}>
      {(names) => (
        <textarea
          {...names}
          class="area"
          rows={rows ?? 4}
          value={value}
          aria-invalid={error !== undefined}
          {...EXACT}
          placeholder={placeholder}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

/** One of a few, all seen at once. */
export function ChoiceField<Value extends string>(
  props: FieldProps<Value> & { readonly choices: readonly (readonly [value: Value, words: string])[] },
) {
  const { label, value, choices, set, hint, error } = props;
  const id = useId();
  return (
    <div class="form-row" role="radiogroup" aria-labelledby={id}>
      <span id={id} class="label">
        {label}
      </span>
      <div>
        <div class="choices">
          {choices.map(([one, words]) => (
            <label key={one} class="check">
              <input type="radio" name={id} checked={one === value} onChange={() => set(one)} />
              {words}
            </label>
          ))}
        </div>
        <Wrong text={error} />
        {hint !== undefined && <p class="hint">{hint}</p>}
      </div>
    </div>
  );
}

/** Fields that belong together, under a heading. */
export function FieldGroup(props: { readonly title: string; readonly children: ComponentChildren }) {
  const { title, children } = props;
  return (
    <fieldset class="form-group">
      <legend>{title}</legend>
      {toChildArray(children)}
    </fieldset>
  );
}

/** Says of a form that came back that it did, and offers it as it began. */
export function CameBack({ draft }: { readonly draft: Pick<FormDraft<unknown>, "typedAt" | "anew"> }) {
  const { typedAt, anew } = draft;
  if (typedAt === undefined) return null;
  return (
    <p class="row soft" role="status">
      <span>
        What you typed until <Time at={typedAt.toISOString()} /> is here again.
      </span>
      <Button run={anew} label="Start anew" />
    </p>
  );
}

/**
 * The buttons of a form, and what is wrong with all of it.
 * @param props.fields the beginnings of what the API calls the fields that say themselves what is wrong with them
 * @param props.drop forgets what was typed
 */
export function FormEnd(props: {
  readonly wrong: ApiError | undefined;
  readonly fields?: readonly string[];
  readonly isBusy: boolean;
  readonly act: string;
  readonly leave: string;
  readonly drop: () => void;
  readonly mayAct?: boolean;
}) {
  const { wrong, fields = [], isBusy, act, leave, drop, mayAct } = props;
  const field = wrong?.details["field"];
  const isAbove = typeof field === "string" && fields.some((name) => field.startsWith(name));
  const lost = "No answer came, so it may be done or not. What you typed is kept here.";
  return (
    <div class="form-acts form-end">
      <Button look="main" disabled={isBusy || mayAct === false} label={act} />
      <Button to={leave} run={drop} label="Cancel" />
      <Wrong text={isAbove ? "Something above is wrong." : wrong?.status === 0 ? lost : wrong?.message} />
    </div>
  );
}
