import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const SETTING = "evreg.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];
const kept = localStorage.getItem(SETTING);

export const theme = signal<Theme>(THEMES.find((name) => name === kept) ?? "system");

effect(() => {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
});

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(SETTING, theme.value);
}
