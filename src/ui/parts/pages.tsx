import { useKeys } from "../shell/keys.ts";
import { goTo } from "../shell/route.ts";
import { numberText, Time } from "./time.tsx";

/**
 * The foot of a list: how far back it reaches, and where it goes on. Newest first, older below.
 * @param props.searched how many records a search has looked at
 */
export function Pages(props: {
  readonly shown: number;
  readonly oldest: string | undefined;
  readonly searched?: number | undefined;
  readonly newest: string | undefined;
  readonly older: string | undefined;
}) {
  const { shown, oldest, searched, newest, older } = props;
  useKeys([
    {
      key: "l",
      what: "Older",
      run: () => {
        if (older !== undefined) goTo(older);
      },
    },
  ]);
  if (shown === 0 && older === undefined && newest === undefined) return null;
  return (
    <div class="more">
      <span>
        {numberText(shown)} shown
        {oldest !== undefined && (
          <>
            , back to <Time at={oldest} />
          </>
        )}
        {searched !== undefined && `, ${numberText(searched)} searched`}
      </span>
      <span class="row">
        {newest !== undefined && (
          <a class="btn bare" href={newest}>
            Newest
          </a>
        )}
        {older !== undefined && (
          <a class="btn bare" href={older}>
            {searched === undefined ? "Older" : "Search on"} <kbd>L</kbd>
          </a>
        )}
      </span>
    </div>
  );
}
