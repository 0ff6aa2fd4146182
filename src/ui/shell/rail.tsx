import type { Health } from "../../domain/operations.ts";
import { attention, attentionCount } from "../api/attention.ts";
import type { ApiError } from "../api/resource.ts";
import { identity, readSession } from "../api/session.ts";
import { shared } from "../api/shared.ts";
import { Icon } from "../parts/icons.tsx";
import { Button, useClosing } from "../parts/layout.tsx";
import { linkTo, route } from "../parts/route.ts";
import { Status } from "../parts/states.tsx";
import { numberText } from "../parts/values.tsx";
import { isOffered, type Screen, screenOf, SCREENS } from "./screens.tsx";
import { signOut } from "./sign-in.tsx";

/** Whether the entry is beneath "more" on narrow screens. */
const isBeneathMore = ({ group, path }: Screen): boolean => group === "operate" || path === "deliveries";

/** The navigation: at the left, on narrow screens at the bottom. */
export function Rail(props: { readonly health: Health | undefined; readonly error: ApiError | undefined }) {
  const more = useClosing();
  const colours = theme.use();
  const current = screenOf(route.use());
  const offered = SCREENS.filter(isOffered);
  const link = (screen: Screen, narrow: boolean) => (
    <li key={screen.path} class={narrow ? "" : "late"}>
      <a href={linkTo([screen.path])} aria-current={screen === current ? "page" : undefined}>
        <Icon name={screen.path} />
        {screen.title}
        {screen === SCREENS[0] && <NeedsPerson />}
      </a>
    </li>
  );
  const daily = offered.filter(({ group }) => group === "daily");
  const operate = offered.filter(({ group }) => group === "operate");
  return (
    <nav class="rail" aria-label="Main">
      <a class="brand" href="#/">
        <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M3 4.5h8M3 10h5M3 15.5h8M12.5 6.5l4 3.5-4 3.5" />
        </svg>
        evreg
        <small>{props.health?.version ?? ""}</small>
      </a>
      <ul class="tabs">
        {daily.map((screen) => link(screen, screen.path !== "deliveries"))}
        <li class="narrow-only">
          <details ref={more} class="more-screens">
            <summary class={current !== undefined && isBeneathMore(current) ? "lit" : undefined}>
              <Icon name="more" />
              More
            </summary>
            <ul>{offered.filter(isBeneathMore).map((screen) => link(screen, true))}</ul>
          </details>
        </li>
      </ul>
      {operate.length > 0 && (
        <div class="extra">
          <h2>Operate</h2>
          <ul>{operate.map((screen) => link(screen, true))}</ul>
        </div>
      )}
      <div class="foot">
        <HealthLine health={props.health} error={props.error} />
        <div class="row">
          <code class="soft grow" title={location.host}>
            {location.host}
          </code>
          <button
            class="btn bare icon-only push"
            aria-label={`Colours: ${colours === "system" ? "as the system" : colours}`}
            title={`Colours: ${colours === "system" ? "as the system" : colours}`}
            onClick={nextTheme}
          >
            <Icon name="theme" />
          </button>
        </div>
        {readSession() !== null && (
          <div class="row">
            <span class="soft grow" title={identity.value?.scopes.join(", ")}>
              {identity.value?.name}
            </span>
            <Button look="bare push" run={signOut} label="Sign out" />
          </div>
        )}
      </div>
    </nav>
  );
}

/** How many things need a person; on narrow screens a dot. */
function NeedsPerson() {
  const { answer } = attention.use();
  if (answer === undefined) return null;
  const count = attentionCount(answer, Date.now());
  if (count === 0) return null;
  return (
    <span class="alert">
      {numberText(count)}
      <span class="sr"> {count === 1 ? "thing needs" : "things need"} a person</span>
    </span>
  );
}

function HealthLine(props: { readonly health: Health | undefined; readonly error: ApiError | undefined }) {
  const { health, error } = props;
  if (error !== undefined) {
    return (
      <div class="row danger-text">
        <Status state="failed" word={false} />
        {error.status === 0 ? "Not connected" : error.message}
      </div>
    );
  }
  const isFine = health === undefined || (health.store === "ok" && health.engine === "running");
  return (
    <div class="row">
      <Status state={isFine ? "active" : "failed"} word={false} />
      {isFine ? "Store and engine run" : `Store ${health.store}, engine ${health.engine}`}
    </div>
  );
}

type Theme = "system" | "light" | "dark";

const SETTING = "evreg.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const kept = localStorage.getItem(SETTING);

const theme = shared<Theme>(THEMES.find((name) => name === kept) ?? "system");

/** `system` leaves the choice to the browser. */
function paint(): void {
  document.documentElement.dataset["theme"] = theme.value;
}

paint();

function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(SETTING, theme.value);
  paint();
}
