import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const SETTING = "evreg.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const kept = localStorage.getItem(SETTING);

export const theme = signal<Theme>(THEMES.find((name) => name === kept) ?? "system");
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
/** What is shown; charts draw anew with it. */
export const isDark = signal(systemIsDark.matches);

function follow(): void {
  isDark.value = theme.value === "dark" || (theme.value === "system" && systemIsDark.matches);
}
systemIsDark.addEventListener("change", follow);

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
  follow();
});

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(SETTING, theme.value);
}
