import { Button } from "../../parts/button.tsx";
import { useState } from "preact/hooks";
import { type PageMeta, SEARCH_LIMITS } from "../../../domain/event.ts";
import { askJson, withQuery, ApiError } from "../../api/request.ts";
import { useActing } from "../../parts/acting.ts";
import { linkTo } from "../../parts/route.ts";
import { Time } from "../../parts/time.tsx";
import { objectText } from "./draft.ts";
import { Wrong } from "../../parts/form.tsx";

const TRIED_EVENTS = 50;

interface TriedEvent {
  readonly rowid: number;
  readonly timestamped: string;
  readonly passes: boolean;
}

interface Trial {
  readonly events: readonly TriedEvent[];
  readonly warnings: readonly string[];
}

interface Listed {
  readonly rowid: number;
  readonly timestamped: string;
}

async function tryFilter(action: string, filter: string): Promise<Trial> {
  const where = JSON.stringify(JSON.parse(objectText("filter", filter)));
  if (where.length > SEARCH_LIMITS.whereLength) {
    throw new ApiError(
      422,
      `Filters of more than ${SEARCH_LIMITS.whereLength} characters cannot be tried here.`,
    );
  }
  const limit = TRIED_EVENTS;
  const { data: last } = await askJson<readonly Listed[]>(withQuery("/v1/events", { action, limit }));
  const oldest = last.at(-1);
  if (oldest === undefined) return { events: [], warnings: [] };
  const { data: events, meta } = await askJson<readonly Listed[], PageMeta>(
    withQuery("/v1/events", { action, limit, where, from: oldest.timestamped, after: last[0]!.rowid + 1 }),
  );
  const passing = new Set(events.map(({ rowid }) => rowid));
  return {
    events: last.map(({ rowid, timestamped }) => ({ rowid, timestamped, passes: passing.has(rowid) })),
    warnings: (meta?.warnings ?? []).map(({ pointer, message }) => `${pointer || "The filter"} ${message}`),
  };
}

/** Tries a filter on the last events before anything depends on it. */
export function FilterTrial({ action, filter }: { readonly action: string; readonly filter: string }) {
  const [trial, setTrial] = useState<{ readonly of: string; readonly result?: Trial } | undefined>();
  const { isBusy, failure, act } = useActing();
  const what = `${action}\n${filter}`;
  if (filter.trim() === "" || action.trim() === "") return null;
  const run = async (): Promise<void> => {
    setTrial({ of: what });
    setTrial({ of: what, result: await tryFilter(action.trim(), filter) });
  };
  const isOfThis = trial?.of === what;
  const shown = isOfThis ? trial.result : undefined;
  const passing = shown?.events.filter(({ passes }) => passes).length ?? 0;
  return (
    <div class="form-row">
      <span class="label">Try it</span>
      <div class="trial" aria-live="polite">
        <div class="row">
          <Button run={() => void act(run)} disabled={isBusy} label={`On the last ${TRIED_EVENTS} events`} />
          {shown !== undefined && shown.events.length > 0 && (
            <span>
              <b class="strong">
                {passing} of {shown.events.length}
              </b>{" "}
              would be sent
            </span>
          )}
          {shown?.events.length === 0 && <span>No event of {action} is stored to try it on.</span>}
        </div>
        {isOfThis && <Wrong text={failure?.message} />}
        {shown?.warnings.map((warning) => (
          <p key={warning} class="warn-text">
            {warning}
          </p>
        ))}
        {shown !== undefined && shown.events.length > 0 && (
          <ol class="passes" aria-label="The events, newest first">
            {shown.events.map(({ rowid, timestamped, passes }) => (
              <li key={rowid}>
                <a
                  class={passes ? "pass" : ""}
                  href={linkTo(["events", rowid])}
                  target="_blank"
                  rel="noopener"
                  title={`Event ${rowid}, ${timestamped}: ${passes ? "sent" : "not sent"}`}
                  aria-label={`Event ${rowid}: ${passes ? "sent" : "not sent"}`}
                />
              </li>
            ))}
          </ol>
        )}
        {shown !== undefined && shown.events.length > 0 && (
          <p class="hint">
            Newest first, back to <Time at={shown.events.at(-1)!.timestamped} />. A full square would be sent;
            each opens its event.
          </p>
        )}
      </div>
    </div>
  );
}
