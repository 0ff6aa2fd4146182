import { useEffect, useRef, useState } from "preact/hooks";
import { attemptErrorText } from "../../../domain/words/attempts.ts";
import type { HandlerTest } from "../../../domain/webhook.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import { askJson, askText, withQuery } from "../../api/request.ts";
import { noted } from "../../api/resource.ts";
import { useSending } from "../../api/sending.ts";
import { useDraft } from "../../api/drafts.ts";
import { SubscriptionName } from "../../parts/delivery-acts.tsx";
import { AreaField, CameBack, Form, TextField } from "../../parts/form.tsx";
import { Command, quoted } from "../../parts/copy.tsx";
import { memberText, indentedLines, textOfLines } from "../../parts/json-tokens.ts";
import { JsonView } from "../../parts/json-view.tsx";
import { Say } from "../../parts/states.tsx";
import { durationText } from "../../parts/time.tsx";
import { linkTo } from "../../shell/route.ts";
import { objectText } from "./draft.ts";

interface LastEvent {
  readonly rowid: number;
  readonly action: string;
}

/** The last event of an action, or of any that a pattern stands for, with its payload as it was published. */
async function lastEvent(
  pattern: string,
): Promise<{ readonly id: number; readonly action: string; readonly payload: string } | undefined> {
  const action = pattern === "*" ? undefined : pattern;
  const { data } = await askJson<readonly LastEvent[]>(withQuery("/v1/events", { action, limit: 1 }));
  const [last] = data;
  if (last === undefined) return undefined;
  const event = memberText(await askText(`/v1/events/${last.rowid}`), "data") ?? "{}";
  return { id: last.rowid, action: last.action, payload: memberText(event, "payload") ?? "{}" };
}

/** Sends a handler one signed request, and shows what went and what came. */
export function TestHandler({ subscription }: { readonly subscription: Subscription }) {
  const { rowid, application, subscription: name, handler } = subscription;
  const isPattern = subscription.action.includes("*");
  const draft = useDraft(linkTo(["subscriptions", rowid, "test"]), () => ({
    action: isPattern ? "" : subscription.action,
    payload: "{}",
  }));
  const { action, payload } = draft.fields;
  // What comes late must not replace what a person has typed.
  const typed = useRef(draft.typedAt !== undefined);
  const [origin, setOrigin] = useState("");
  const { isSending, failure, send } = useSending();
  const [result, setResult] = useState<HandlerTest | undefined>();

  useEffect(() => {
    void (async () => {
      try {
        const last = await lastEvent(subscription.action);
        if (typed.current) return;
        if (last === undefined) return setOrigin("No event is stored to take one from.");
        draft.begin({ action: last.action, payload: textOfLines(indentedLines(last.payload)) });
        setOrigin(`That of event ${last.id}, the last one.`);
      } catch (error) {
        noted(error);
      }
    })();
  }, [rowid]);

  const makeUp = async (): Promise<void> => {
    const path = `/v1/actions/${encodeURIComponent(action.trim())}/sample`;
    const sample = memberText(await askText(path), "data") ?? "{}";
    draft.begin({ payload: textOfLines(indentedLines(memberText(sample, "payload") ?? "{}")) });
    setOrigin(`Made up from the schema, with seed ${memberText(sample, "seed") ?? ""}.`);
  };
  const run = async (): Promise<void> => {
    const text = `{"action":${JSON.stringify(action.trim())},"payload":${objectText("filter", payload)}}`;
    setResult(undefined);
    const answer = await askJson<HandlerTest>(`/v1/subscriptions/${rowid}/test`, { method: "POST", text });
    draft.drop();
    setResult(answer.data);
  };
  return (
    <section class="stack" aria-label={`Test of ${application}/${name}`}>
      <header class="head">
        <div class="what">
          <h1>
            Test <SubscriptionName of={subscription} />
          </h1>
          <p class="lede">
            Sends <code>{handler}</code> one signed request, at once, whatever the filter says. It is stored
            nowhere, and does not count for the handler's health.
          </p>
        </div>
      </header>
      <CameBack draft={draft} />
      <div class="cols even">
        <Form class="form stacked" send={() => send(run)}>
          <div class="form-group">
            {isPattern && (
              <TextField
                label="Action"
                value={action}
                set={(text) => draft.change({ action: text })}
                hint={`One that ${subscription.action} stands for.`}
              />
            )}
            <AreaField
              label="Payload"
              value={payload}
              set={(text) => {
                typed.current = true;
                draft.change({ payload: text });
              }}
              rows={14}
              hint={origin}
              error={failure?.message}
            />
          </div>
          <div class="form-acts">
            <button class="btn main" disabled={isSending}>
              {isSending ? "Waiting for the answer" : "Send it"}
            </button>
            <button type="button" class="btn" disabled={action.trim() === ""} onClick={() => send(makeUp)}>
              Make one up
            </button>
          </div>
          <Command
            text={`evreg subscriptions test ${quoted(`${application}/${name}`)}${isPattern ? ` --action ${quoted(action)}` : ""}`}
          />
        </Form>
        <div class="stack" aria-live="polite">
          {result === undefined ? (
            <div class="panel empty">What the handler answers is shown here.</div>
          ) : (
            <TestResult result={result} />
          )}
        </div>
      </div>
    </section>
  );
}

function headerText(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

function TestResult({ result }: { readonly result: HandlerTest }) {
  const { outcome, response, error_code: code, refusal, request } = result;
  const isDelivered = outcome === "delivered";
  const parts = [
    ["look-up", result.dns_ms],
    ["connection", result.connect_ms],
    ["first byte", result.first_byte_ms],
  ] as const;
  const times = parts.flatMap(([part, ms]) => (ms === null ? [] : [`${part} ${durationText(ms)}`]));
  return (
    <>
      <Say
        state={isDelivered ? "delivered" : "failed"}
        title={
          response === null
            ? `No answer: ${code === null ? "none came" : attemptErrorText(code, result.tls_reason)}`
            : `The handler answered ${response.status_code}`
        }
      >
        {refusal !== null && `${refusal} `}
        {isDelivered ? "It would count as delivered" : "It would count as failed"}, after{" "}
        {durationText(result.duration_ms)}
        {times.length > 0 && ` (${times.join(", ")})`}.
      </Say>
      {response !== null && (
        <section class="panel codebox" aria-label="The answer">
          <header>
            <h2>Answer</h2>
            <span class="aside">HTTP {response.status_code}, the first KiB</span>
          </header>
          <pre class="code plain" tabIndex={0}>
            {headerText(response.headers)}
            {response.body !== null && `\n\n${response.body}`}
          </pre>
        </section>
      )}
      <section class="panel codebox" aria-label="The request">
        <header>
          <h2>{response === null && result.connect_ms === null ? "Request, not sent" : "Request"}</h2>
          <span class="aside">bearer and signatures left out</span>
        </header>
        <pre class="code plain" tabIndex={0}>
          {`${request.method} ${request.url}\n${headerText(request.headers)}`}
        </pre>
      </section>
      <JsonView title="Body" what="the body" text={request.body} />
    </>
  );
}
