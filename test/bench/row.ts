/** One line of the report. */
export interface Row {
  readonly scenario: string;
  /** What it is measured against, in words and figures. */
  readonly ceiling?: string;
  /** What the figure is of, where it is not all that was measured. */
  readonly measured?: string;
  readonly figure: string;
  readonly target?: string;
  readonly met?: boolean;
  /** Whatever else was measured, for the file. */
  readonly detail?: unknown;
}

type Held = Required<Pick<Row, "figure" | "target" | "met">>;
type Shown = (value: number) => string;

export function perSecond(rate: number): string {
  return `${Math.round(rate).toLocaleString("en")}/s`;
}

export function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}

export function mb(value: number): string {
  return `${Math.round(value)} MB`;
}

export function times(value: number): string {
  return value.toFixed(2);
}

/** For a figure that must not be below its target. */
export function atLeast(figure: number, target: number, shown: Shown = times): Held {
  return { figure: shown(figure), target: `≥ ${shown(target)}`, met: figure >= target };
}

/** For a figure that must not be above its target. */
export function atMost(figure: number, target: number, shown: Shown = times): Held {
  return { figure: shown(figure), target: `≤ ${shown(target)}`, met: figure <= target };
}
