import { useEffect, useRef, useState } from "preact/hooks";
import type { Event } from "../../../domain/event.ts";
import { shellWord } from "../../../domain/formats.ts";
import type { Subscription } from "../../../domain/subscription.ts";
import type { HandlerTest } from "../../../domain/webhook.ts";
import { attemptErrorText } from "../../../domain/words/attempts.ts";
import { askJson, noted, withQuery } from "../../api/resource.ts";
import { Command } from "../../parts/copy.tsx";
import { AreaField, CameBack, Form, TextField, useForm } from "../../parts/form.tsx";
import { indented } from "../../parts/json-tokens.ts";
import { JsonView } from "../../parts/json-view.tsx";
import { Button, CodeBox, Head, Plain } from "../../parts/layout.tsx";
import { linkTo } from "../../parts/route.ts";
import { Say } from "../../parts/states.tsx";
import { durationText } from "../../parts/values.tsx";
import { partsText } from "../../records/attempt-times.ts";
import { eventPath, type ReadEvent, readEvent, readSample } from "../../records/exact-record.ts";
import { SubscriptionName } from "../../records/subscription.tsx";
import { objectText } from "./settings.ts";

/** The last event of an action, or of any that a pattern stands for, with its payload as it was published. */
async function lastEvent(pattern: string): Promise<ReadEvent | undefined> {
  const action = pattern === "*" ? undefined : pattern;
  const path = withQuery("/v1/events", { action, limit: 1, payloads: false });
  const [last] = (await askJson<readonly Event[]>(path)).data;
  return last === undefined ? undefined : (await readEvent(eventPath(last.rowid))).data;
}

/** Sends a handler one signed request, and shows what went and what came. */
export function TestHandler({ subscription }: { readonly subscription: Subscription }) {
  const { rowid, application, subscription: name, handler } = subscription;
  const isPattern = subscription.action.includes("*");
  const form = useForm(linkTo(["subscriptions", rowid, "test"]), () => ({
    action: isPattern ? "" : subscription.action,
    payload: "{}",
  }));
  const { draft, isBusy, failure, act } = form;
  const { action, payload } = draft.fields;
  // What comes late must not replace what a person has typed.
  const typed = useRef(draft.typedAt !== undefined);
  const [origin, setOrigin] = useState("");
  const [result, setResult] = useState<HandlerTest | undefined>();

  useEffect(() => {
    void (async () => {
      try {
        const last = await lastEvent(subscription.action);
        if (typed.current) return;
        if (last === undefined) return setOrigin("No event is stored to take one from.");
        draft.begin({ action: last.action, payload: indented(last.exactText) });
        setOrigin(`That of event ${last.rowid}, the last one.`);
      } catch (error) {
        noted(error);
      }
    })();
  }, [rowid]);

  const makeUp = async (): Promise<void> => {
    const path = `/v1/actions/${encodeURIComponent(action.trim())}/sample`;
    draft.begin({ payload: indented((await readSample(path)).data.exactText) });
    setOrigin("Made up from the schema.");
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
      <Head
        title={<SubscriptionName before="Test " record={subscription} />}
        lede={
          <>
            Sends <code>{handler}</code> one signed request, at once, whatever the filter says. It is stored
            nowhere, and does not count for the handler's health.
          </>
        }
      />
      <CameBack draft={draft} />
      <div class="cols even">
        <Form class="form stacked" send={() => act(run)}>
          <div class="panel pad form-group">
            {isPattern && (
              <TextField
                label="Action"
                {...form.fieldOf("action")}
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
              error={form.wrong === "action" ? undefined : failure?.message}
            />
          </div>
          <div class="form-acts">
            <Button look="main" disabled={isBusy} label={isBusy ? "Waiting for the answer" : "Send it"} />
            <Button run={() => act(makeUp)} disabled={action.trim() === ""} label="Make one up" />
          </div>
          <Command
            text={`evreg subscriptions test ${shellWord(`${application}/${name}`)}${isPattern ? ` --action ${shellWord(action)}` : ""}`}
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
        {durationText(result.duration_ms)} ({partsText(result)}).
      </Say>
      {response !== null && (
        <CodeBox title="Answer" label="The answer" note={`HTTP ${response.status_code}, the first KiB`}>
          <Plain>
            {headerText(response.headers)}
            {response.body !== null && `\n\n${response.body}`}
          </Plain>
        </CodeBox>
      )}
      <CodeBox
        title={response === null && result.connect_ms === null ? "Request, not sent" : "Request"}
        label="The request"
        note="bearer and signatures left out"
      >
        <Plain>{`${request.method} ${request.url}\n${headerText(request.headers)}`}</Plain>
      </CodeBox>
      <JsonView title="Body" what="the body" text={request.body} />
    </>
  );
}
