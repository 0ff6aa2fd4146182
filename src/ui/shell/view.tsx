import { useEffect, useState } from "preact/hooks";
import { Say } from "../parts/states.tsx";
import type { Route } from "./route.ts";
import type { Screen, ScreenView } from "./screens.tsx";

const loaded = new Map<Screen, ScreenView>();

/** A screen; a large one is loaded when it is first looked at. */
export function View({ screen, route }: { readonly screen: Screen; readonly route: Route }) {
  const [hasFailed, setFailed] = useState(false);
  const [, setLoaded] = useState(false);
  useEffect(() => {
    const { load } = screen;
    if (load === undefined || loaded.has(screen)) return;
    const begin = async (): Promise<void> => {
      try {
        loaded.set(screen, await load());
        setLoaded(true);
      } catch {
        setFailed(true);
      }
    };
    void begin();
  }, [screen]);
  const Loaded = screen.view ?? loaded.get(screen);
  if (Loaded !== undefined) return <Loaded route={route} />;
  if (!hasFailed) return null;
  return (
    <Say
      state="failed"
      title="This screen could not be loaded"
      button={
        <button class="btn" onClick={() => location.reload()}>
          Load the page again
        </button>
      }
    >
      The server cannot be reached, or has another version since the page was opened.
    </Say>
  );
}
