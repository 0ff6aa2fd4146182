import { type ComponentChildren, toChildArray } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { type FormDraft, useDraft, wrongField } from "../api/drafts.ts";
import type { ApiError } from "../api/resource.ts";
import { type Acting, type Question, useActing } from "./acting.ts";
import { Button, Head } from "./layout.tsx";
import { Time } from "./values.tsx";

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

/**
 * A label, what is typed or picked beside it, what it means, and what is wrong with it.
 * @param props.role where the label is that of several fields, or of none
 */
export function Field(props: {
  readonly label: string;
  readonly role?: "group" | "radiogroup";
  readonly children: (names: {
    readonly id: string;
    readonly "aria-describedby": string;
  }) => ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
}) {
  const { label, role, children, hint, error } = props;
  const id = useId();
  const about = `${id}-about`;
  return (
    <div class="form-row" role={role} aria-labelledby={role && `${id}-label`}>
      {role === undefined ? <label for={id}>{label}</label> : <span id={`${id}-label`}>{label}</span>}
      <div>
        {children({ id, "aria-describedby": about })}
        <div id={about}>
          <Wrong text={error} />
          {hint !== undefined && <p class="hint">{hint}</p>}
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
  readonly required?: boolean;
}

/** One line of text. */
export function TextField(
  props: FieldProps<string> & {
    readonly placeholder?: string;
    readonly secret?: boolean;
    readonly list?: readonly string[];
    readonly type?: "url" | "datetime-local";
    readonly mode?: "numeric" | "decimal" | undefined;
  },
) {
  const { value, set, error, list } = props;
  const options = useId();
  return (
    <Field {...props}>
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
            placeholder={props.placeholder}
            list={list && options}
            onInput={(event) => set(event.currentTarget.value)}
          />
          {list && (
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
  props: FieldProps<string> & { readonly placeholder?: string; readonly rows?: number },
) {
  const { value, set, error, placeholder, rows = 4 } = props;
  return (
    <Field {...props}>
      {(names) => (
        <textarea
          {...names}
          class="area"
          rows={rows}
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
  props: FieldProps<Value> & { readonly choices: Readonly<Partial<Record<Value, string>>> },
) {
  const { value, choices, set } = props;
  return (
    <Field {...props} role="radiogroup">
      {({ id }) => (
        <div class="choices">
          {(Object.keys(choices) as Value[]).map((one) => (
            <label key={one} class="check">
              <input type="radio" name={id} checked={one === value} onChange={() => set(one)} />
              {choices[one]}
            </label>
          ))}
        </div>
      )}
    </Field>
  );
}

/** Fields that belong together, under a heading. */
export function FieldGroup(props: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <fieldset class="panel pad form-group">
      <legend>{props.title}</legend>
      {toChildArray(props.children)}
    </fieldset>
  );
}

/** What a form is: what is typed, which this tab keeps, what is wrong with it, and whether it is being sent. */
export interface KeptForm<Fields> extends Acting {
  readonly draft: FormDraft<Fields>;
  /** The field that the last answer found wrong; `undefined` where it was none of these. */
  readonly wrong: keyof Fields | undefined;
  /** What the component of a field takes. */
  readonly fieldOf: <Name extends keyof Fields>(
    name: Name,
  ) => {
    readonly value: Fields[Name];
    readonly set: (value: Fields[Name]) => void;
    readonly error: string | undefined;
    readonly required: boolean;
  };
}

/**
 * A form whose fields are called as the API calls them. What goes wrong stands beside its field until that is changed.
 * @param name see `useDraft`, as for `start` and `kept`
 * @param options.required the server names one wrong field at a time; those of these that are empty are seen here
 * @param options.names fields that have another name here, by that of the API
 */
export function useForm<Fields extends object>(
  name: string,
  start: () => Fields,
  options: {
    readonly kept?: (fields: Fields) => Fields;
    readonly required?: readonly (keyof Fields)[];
    readonly names?: Readonly<Record<string, keyof Fields>>;
  } = {},
): KeptForm<Fields> {
  const { required = [], names = {} } = options;
  const draft = useDraft(name, start, options.kept);
  const acting = useActing();
  const { failure, forget } = acting;
  const { fields } = draft;
  const { field: wrong, message } = failure === undefined ? {} : wrongField(failure, fields, names);
  const change = (part: Partial<Fields>): void => {
    draft.change(part);
    if (wrong !== undefined && wrong in part) forget();
  };
  return {
    ...acting,
    draft: { ...draft, change },
    wrong,
    fieldOf: (field) => {
      const isMissing =
        wrong !== undefined && required.includes(field) && String(fields[field]).trim() === "";
      return {
        value: fields[field],
        set: (value) => change({ [field]: value } as unknown as Partial<Fields>),
        error: field === wrong ? message : isMissing ? "It must not be empty." : undefined,
        required: required.includes(field),
      };
    },
  };
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
 * A form as a screen of its own.
 * @param props.send what its button does, after a question where there is one
 * @param props.leave where it leads without being sent; what was typed is forgotten then
 * @param props.failure what is wrong with it beside what was answered to it
 */
export function FormScreen<Fields>(props: {
  readonly form: KeptForm<Fields>;
  readonly label: string;
  readonly title?: ComponentChildren;
  readonly lede?: ComponentChildren;
  readonly send: () => Promise<unknown>;
  readonly question?: Question;
  readonly act: string;
  readonly look?: string;
  readonly mayAct?: boolean;
  readonly leave: string;
  readonly failure?: ApiError | undefined;
  readonly below?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { form, label, send, question, act, look = "main", mayAct = true, leave } = props;
  const { draft, isBusy, wrong } = form;
  const failure = form.failure ?? props.failure;
  const lost = "No answer came, so it may be done or not. What you typed is kept here.";
  const why = failure?.status === 0 ? lost : failure?.message;
  return (
    <section class="stack narrow" aria-label={label}>
      <Head title={props.title ?? label} lede={props.lede} />
      <CameBack draft={draft} />
      <Form send={() => form.act(send, question)}>
        {props.children}
        <div class="form-acts form-end">
          <Button look={look} disabled={isBusy || !mayAct} label={act} />
          <Button to={leave} run={draft.drop} label="Cancel" />
          <Wrong text={wrong === undefined ? why : "Something above is wrong."} />
        </div>
      </Form>
      {props.below}
    </section>
  );
}
