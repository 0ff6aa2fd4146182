/** One line of the report. */
export interface Row {
  readonly scenario: string;
  /** What it is measured against, in words and figures; `-` without. */
  readonly ceiling: string;
  readonly measured: string;
  readonly figure: string;
  readonly target: string;
  readonly met: boolean;
  /** Whatever else was measured, for the file. */
  readonly detail: unknown;
}

export function perSecond(rate: number): string {
  return `${Math.round(rate).toLocaleString("en")}/s`;
}

export function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 1)} ms`;
}

export function mb(value: number): string {
  return `${Math.round(value)} MB`;
}

/** For a figure that must not be below its target. */
export function atLeast(figure: number, target: number): Pick<Row, "figure" | "target" | "met"> {
  return { figure: figure.toFixed(2), target: `≥ ${target.toFixed(2)}`, met: figure >= target };
}
