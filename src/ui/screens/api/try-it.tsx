import { useState } from "preact/hooks";
import { shellWord } from "../../../domain/formats.ts";
import { SCOPE_NAMES } from "../../../domain/token.ts";
import { apiUrl, ask, withQuery } from "../../api/resource.ts";
import { maySome } from "../../api/session.ts";
import { type Question, useActing } from "../../parts/acting.ts";
import { curlOf, JSON_HEADER, TOKEN_HEADER } from "../../parts/copy.tsx";
import { AreaField, Field, Form, TextField } from "../../parts/form.tsx";
import { JsonView } from "../../parts/json-view.tsx";
import { Section, Words } from "../../parts/layout.tsx";
import { Failed, Say } from "../../parts/states.tsx";
import { durationText, sizeText } from "../../parts/values.tsx";
import {
  CANNOT_BE_UNDONE,
  needsNoToken,
  NOT_TRIED,
  type Operation,
  type Parameter,
  scopeOf,
} from "./open-api.ts";

export type RequestValues = Readonly<Record<string, string>>;

/** The path with its parameters, and the query with those that have a value. Names that are not given stay as `{name}`. */
function pathWith(operation: Operation, values: RequestValues): string {
  const filled = operation.path.replace(/\{(\w+)\}/g, (braces, name: string) => {
    const value = values[name]?.trim() ?? "";
    return value === "" ? braces : encodeURIComponent(value);
  });
  return withQuery(filled, valuesIn("query", operation, values));
}

/** What is given of the parameters at a place. */
function valuesIn(
  place: "query" | "header",
  { parameters = [] }: Operation,
  values: RequestValues,
): RequestValues {
  const filled = parameters.filter(({ in: where, name }) => where === place && (values[name] ?? "") !== "");
  return Object.fromEntries(filled.map(({ name }) => [name, values[name]!]));
}

/** Writes the request for a shell. The token is a variable, never the token. */
export function curlLine(operation: Operation, values: RequestValues, body: string | undefined): string {
  const filled = Object.entries(valuesIn("header", operation, values));
  const headers = [
    ...(needsNoToken(operation) ? [] : [TOKEN_HEADER]),
    ...filled.map(([name, value]) => shellWord(`${name}: ${value}`)),
    ...(body === undefined ? [] : [JSON_HEADER]),
  ];
  return curlOf(operation.method, apiUrl(pathWith(operation, values)), headers, body);
}

interface Answered {
  readonly status: number;
  readonly ms: number;
  readonly isJson: boolean;
  readonly text: string;
}

interface Props {
  readonly operation: Operation;
  readonly values: RequestValues;
  readonly setValues: (values: RequestValues) => void;
  /** `undefined` where nothing is sent. */
  readonly body: string | undefined;
  readonly setBody: (body: string) => void;
  /** It was done as it was typed. */
  readonly sent: () => void;
}

/** Why an operation cannot be tried with the token of this page, if so. */
function whyNot(operation: Operation): string | undefined {
  const scope = SCOPE_NAMES.find((name) => name === scopeOf(operation));
  const mayTry = needsNoToken(operation) || scope === undefined || maySome(scope);
  return NOT_TRIED[operation.operationId] ?? (mayTry ? undefined : `Your token has not the scope ${scope}.`);
}

/** Sends the request with the token of this page. */
export function TryIt({ operation, values, setValues, body, setBody, sent }: Props) {
  const [answered, setAnswered] = useState<Answered | undefined>();
  const { isBusy, failure, act } = useActing();
  const cannot = whyNot(operation);
  if (cannot !== undefined) {
    return (
      <Say state="pending" title="Not tried here">
        {cannot}
      </Say>
    );
  }
  const { method, parameters = [], operationId } = operation;
  const missing = parameters.find(
    ({ in: where, name }) => where === "path" && (values[name] ?? "").trim() === "",
  );
  const consequence =
    CANNOT_BE_UNDONE[operationId] ?? (method === "DELETE" ? "It cannot be undone." : undefined);
  const question: Question = {
    title: `${operation.summary}?`,
    body: consequence,
    act: `Send ${method}`,
    danger: true,
    ...(values["id"] !== undefined && { type: values["id"].trim() }),
  };
  const send = async (): Promise<void> => {
    setAnswered(undefined);
    const startedMs = performance.now();
    const response = await ask(pathWith(operation, values), {
      method,
      headers: valuesIn("header", operation, values),
      text: body,
    });
    const text = await response.text();
    if (response.ok) sent();
    const isJson = response.headers.get("content-type")?.includes("json") === true;
    setAnswered({ status: response.status, ms: performance.now() - startedMs, isJson, text });
  };
  return (
    <Section title="Try it" note={needsNoToken(operation) ? "it needs no token" : "with your token"}>
      <Form
        class="panel pad form-group"
        send={() => act(send, consequence === undefined ? undefined : question)}
      >
        {parameters.map((parameter) => (
          <ParameterField
            key={parameter.name}
            parameter={parameter}
            value={values[parameter.name] ?? ""}
            set={(value) => setValues({ ...values, [parameter.name]: value })}
          />
        ))}
        {body !== undefined && (
          <AreaField
            label="Body"
            value={body}
            set={setBody}
            rows={Math.min(16, body.split("\n").length + 1)}
          />
        )}
        <div class="form-acts">
          <button
            class={method === "DELETE" ? "btn danger" : "btn main"}
            disabled={isBusy || missing !== undefined}
          >
            Send {method}
          </button>
          {missing !== undefined && <span class="muted">It needs {missing.name}.</span>}
        </div>
      </Form>
      <div aria-live="polite" class="stack tight answered">
        <Failed error={failure} title="No answer" />
        {answered !== undefined && <AnswerView answered={answered} />}
      </div>
    </Section>
  );
}

function ParameterField(props: {
  readonly parameter: Parameter;
  readonly value: string;
  readonly set: (value: string) => void;
}) {
  const { parameter, value, set } = props;
  const { name, schema } = parameter;
  const options = schema.type === "boolean" ? ["true", "false"] : schema.enum?.map(String);
  const hint = schema.description && <Words text={schema.description} />;
  if (options !== undefined) {
    return (
      <Field label={name} hint={hint}>
        {(names) => (
          <select {...names} class="field" value={value} onChange={(event) => set(event.currentTarget.value)}>
            <option value="">
              {schema.default === undefined ? "not sent" : `${typed(schema.default)} (default)`}
            </option>
            {options.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        )}
      </Field>
    );
  }
  const example = schema.examples?.[0] ?? schema.default;
  return (
    <TextField
      label={name}
      value={value}
      set={set}
      hint={hint}
      placeholder={example === undefined ? "" : typed(example)}
      required={parameter.required === true}
      mode={schema.type === "integer" ? "numeric" : undefined}
    />
  );
}

/** A value as it is typed into a field. */
const typed = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function AnswerView({ answered }: { readonly answered: Answered }) {
  const { status, ms, isJson, text } = answered;
  const note = `${durationText(ms)}, ${sizeText(new Blob([text]).size)}`;
  return (
    <>
      <p class="row">
        <span class={`badge ${status < 300 ? "active" : status < 500 ? "waiting" : "failed"}`}>{status}</span>
        <span class="muted">{note}</span>
      </p>
      {text !== "" &&
        (isJson ? (
          <JsonView key={text} title="Answer" what="the answer" text={text} indented note="" />
        ) : (
          <pre class="panel code tall plain" tabIndex={0}>
            {text.slice(0, 65_536)}
          </pre>
        ))}
    </>
  );
}
