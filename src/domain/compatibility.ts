/**
 * Whom a change of a schema must not break: `producer`, so that all the old schema accepts is still accepted; `consumer`,
 * so that whoever was written for the old schema understands all the new one accepts; `full`, both; `none`, nobody.
 */
export const COMPATIBILITY_MODES = ["full", "producer", "consumer", "none"] as const;
export type CompatibilityMode = (typeof COMPATIBILITY_MODES)[number];

/** Which schemas a change is compared with: the one in force, or every revision there was ("transitive" elsewhere). */
export const COMPATIBILITY_AGAINST = ["last", "all"] as const;
type CompatibilityAgainst = (typeof COMPATIBILITY_AGAINST)[number];

export interface CompatibilityRule {
  readonly compatibility: CompatibilityMode;
  readonly compatibility_against: CompatibilityAgainst;
}

export const DEFAULT_RULE: CompatibilityRule = { compatibility: "full", compatibility_against: "last" };

/** One thing a change would break. */
export interface SchemaBreak {
  readonly side: "producer" | "consumer";
  /** JSON pointer to the place: in the new schema, or in the old one for what is gone. */
  readonly pointer: string;
  /** What the old schema says there, and what the new one says; left out where one says nothing. Cut at 1 KiB. */
  readonly was?: unknown;
  readonly is?: unknown;
  /** Sentences for a person: what changed, who breaks and how. */
  readonly message: string;
  /** What to do instead. */
  readonly remedy: string;
  /** `proven` when a payload was found that shows it; otherwise it may be harmless, but that cannot be shown. */
  readonly certainty: "proven" | "cannot_prove";
  /**
   * Such a payload: the old schema accepts it and the new one refuses it, or for a consumer the other way round. Left out
   * when it is too long to be read.
   */
  readonly example?: unknown;
}

/** A break of what a revision promised. */
export interface RevisionBreak extends SchemaBreak {
  readonly revision: number;
}

/** Whether going from one rule to another gives up protection that somebody may rely on. */
export function isLooser(from: CompatibilityRule, to: CompatibilityRule): boolean {
  const [before, after] = [sidesOf(from.compatibility), sidesOf(to.compatibility)];
  if (before.some((side) => !after.includes(side))) return true;
  return before.length > 0 && from.compatibility_against === "all" && to.compatibility_against === "last";
}

/** Who is protected in a mode. */
export function sidesOf(mode: CompatibilityMode): readonly SchemaBreak["side"][] {
  if (mode === "none") return [];
  return mode === "full" ? ["producer", "consumer"] : [mode];
}
