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

interface Trial {
  /** How many were tried. */
  readonly tried: number;
  readonly passing: number;
  /** When the oldest of them was published. */
  readonly since?: string;
  readonly warnings: readonly string[];
  /** The search that finds those that pass. */
  readonly where: string;
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
  const wanted = { action, limit: TRIED_EVENTS, payloads: false };
  const { data: last } = await askJson<readonly Listed[]>(withQuery("/v1/events", wanted));
  const oldest = last.at(-1);
  if (oldest === undefined) return { tried: 0, passing: 0, warnings: [], where };
  const { data: passing, meta } = await askJson<readonly Listed[], PageMeta>(
    withQuery("/v1/events", { ...wanted, where, from: oldest.timestamped, after: last[0]!.rowid + 1 }),
  );
  return {
    tried: last.length,
    passing: passing.length,
    since: oldest.timestamped,
    warnings: (meta?.warnings ?? []).map(({ pointer, message }) => `${pointer || "The filter"} ${message}`),
    where,
  };
}

/** Tries a filter on the last events before anything depends on it. Another filter is another component. */
export function FilterTrial({ action, filter }: { readonly action: string; readonly filter: string }) {
  const [shown, setShown] = useState<Trial | undefined>();
  const { isBusy, failure, act } = useActing();
  if (filter.trim() === "" || action.trim() === "") return null;
  const run = async (): Promise<void> => setShown(await tryFilter(action.trim(), filter));
  return (
    <div class="form-row">
      <span class="label">Try it</span>
      <div class="trial" aria-live="polite">
        <div class="row">
          <Button run={() => void act(run)} disabled={isBusy} label={`On the last ${TRIED_EVENTS} events`} />
          {shown?.tried === 0 && <span>No event of {action} is stored to try it on.</span>}
          {shown?.since !== undefined && (
            <>
              <span>
                <b class="strong">
                  {shown.passing} of {shown.tried}
                </b>{" "}
                since <Time at={shown.since} /> would be sent
              </span>
              <Button
                look="bare"
                to={linkTo(["events"], { action: action.trim(), where: shown.where })}
                label="See such events"
              />
            </>
          )}
        </div>
        <Wrong text={failure?.message} />
        {shown?.warnings.map((warning) => (
          <p key={warning} class="warn-text">
            {warning}
          </p>
        ))}
      </div>
    </div>
  );
}
