import { useEffect, useState } from "preact/hooks";
import type { SchemaVerdict } from "../../../domain/action.ts";
import { askJson, type ApiError } from "../../api/request.ts";
import { noted } from "../../api/resource.ts";
import { whyNoObject } from "../../parts/json-tokens.ts";
import { actionPath } from "./read-action.ts";

export interface Verdict {
  /** The schema that it is about. */
  readonly text: string;
  readonly verdict?: SchemaVerdict;
  readonly error?: ApiError;
}

/** A person types some five letters a second. */
const PAUSE_MS = 400;

/**
 * What applying a schema would do, asked once nothing was typed for a moment; an answer that comes too late is not waited for.
 * @param text `undefined` asks nothing
 * @param options.revision to compare with that one alone, and in full
 * @returns the last answer, which may be about an earlier text
 */
export function useVerdict(
  action: string,
  text: string | undefined,
  options: { readonly replay?: number; readonly revision?: number } = {},
): Verdict | undefined {
  const [state, setState] = useState<Verdict | undefined>();
  const { replay, revision } = options;
  useEffect(() => {
    if (text === undefined || whyNoObject(text) !== undefined) return undefined;
    const controller = new AbortController();
    const ask = async (): Promise<void> => {
      const others = revision === undefined ? { replay: replay ?? 0 } : { revision, mode: "full" };
      // The schema goes as it was written: no number in it is read here.
      const body = `{"schemata":${text},${JSON.stringify(others).slice(1)}`;
      try {
        const { data } = await askJson<SchemaVerdict>(`${actionPath(action)}/check`, {
          method: "POST",
          text: body,
          signal: controller.signal,
        });
        setState({ text, verdict: data });
      } catch (error) {
        if (!controller.signal.aborted) setState({ text, error: noted(error) });
      }
    };
    const timer = setTimeout(() => void ask(), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [action, text, replay, revision]);
  return state;
}
