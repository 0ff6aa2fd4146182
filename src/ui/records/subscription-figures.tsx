import type { SubscriptionFigures } from "../../domain/stats/stats.ts";
import { NONE } from "../parts/layout.tsx";
import { errorText, failedShare, percentText } from "../parts/texts.ts";

/** The share of attempts that succeeded. @param props.of nothing, where it had none */
export function Success({ of }: { readonly of: SubscriptionFigures | undefined }) {
  const share = of === undefined ? null : failedShare(of);
  return share === null ? NONE : <>{percentText(100 - share)}</>;
}

export function LastError({ of }: { readonly of: SubscriptionFigures | undefined }) {
  const error = of?.last_error ?? null;
  return error === null ? NONE : <code>{errorText(error)}</code>;
}
