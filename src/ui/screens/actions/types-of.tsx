import type { ActionTypes } from "../../../domain/action.ts";
import { useResource } from "../../api/resource.ts";
import { shellWord } from "../../../domain/formats.ts";
import { Command, Copy } from "../../parts/copy.tsx";
import { CodeBox, Plain } from "../../parts/layout.tsx";
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
      <Command text={`evreg actions types ${shellWord(action.action)} --out events.ts`} />
      {source === undefined ? (
        <Waiting of={{ error, reload }} />
      ) : (
        <CodeBox
          title="TypeScript"
          label="Types"
          note={<>of payloads and deliveries, revision {answer?.data.revision}</>}
          acts={<Copy text={source} what="the types" />}
        >
          <Plain>{source}</Plain>
        </CodeBox>
      )}
    </>
  );
}
