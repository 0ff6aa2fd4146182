import type { ActionTypes } from "../../../domain/action.ts";
import { useResource } from "../../api/resource.ts";
import { Command, Copy, quoted } from "../../parts/copy.tsx";
import { Waiting } from "../../parts/states.tsx";
import type { PartProps } from "./part-props.ts";
import { actionPath } from "./read-action.ts";

/** TypeScript for the code that publishes or receives it. */
export function TypesOf({ action }: PartProps) {
  const path = `${actionPath(action.action)}/types`;
  const { answer, error, reload } = useResource<ActionTypes>(path);
  const source = answer?.data.source;
  return (
    <>
      <Command text={`evreg actions types ${quoted(action.action)} --out events.ts`} />
      {source === undefined ? (
        <Waiting error={error} reload={reload} />
      ) : (
        <section class="panel codebox" aria-label="Types">
          <header>
            <h2>TypeScript</h2>
            <span class="aside">of payloads and deliveries, revision {answer?.data.revision}</span>
            <span class="push">
              <Copy text={source} what="the types" />
            </span>
          </header>
          <pre class="code plain" tabIndex={0}>
            {source}
          </pre>
        </section>
      )}
    </>
  );
}
