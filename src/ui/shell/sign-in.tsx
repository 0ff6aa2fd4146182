import { useEffect, useState } from "preact/hooks";
import type { Identity } from "../../domain/token.ts";
import { identity } from "../api/identity.ts";
import { ApiError, askJson } from "../api/request.ts";
import { endSession, keepSession, readSession } from "../api/session-token.ts";
import { Command } from "../parts/copy.tsx";
import { Failed } from "../parts/states.tsx";

/** Asks who this tab is: a server for development needs no token. */
async function whoIs(): Promise<ApiError | undefined> {
  try {
    identity.value = (await askJson<Identity>("/v1/whoami")).data;
    return undefined;
  } catch (error) {
    const failure = error instanceof ApiError ? error : new ApiError(0, String(error));
    if (failure.status === 401) endSession();
    return failure;
  }
}

/** Shown until the server has said who asks. */
export function SignIn() {
  const [error, setError] = useState<ApiError | undefined>();
  const [isAsking, setAsking] = useState(true);
  const [text, setText] = useState("");
  const attempt = async (): Promise<void> => {
    setAsking(true);
    setError(await whoIs());
    setAsking(false);
  };
  useEffect(() => void attempt(), []);
  if (isAsking && error === undefined) return <div class="sign-in" aria-busy="true" />;
  const isRefused = error?.status === 401;
  const wasTyped = text !== "";
  return (
    <main class="sign-in">
      <div class="panel pad stack">
        <h1>Sign in to evreg</h1>
        {!isRefused && error !== undefined && <Failed error={error} reload={() => void attempt()} />}
        {isRefused && (
          <>
            <p class="soft">On a machine where you use evreg, this opens the page and signs you in:</p>
            <Command text="evreg open" />
            <form
              class="stack"
              onSubmit={(event) => {
                event.preventDefault();
                keepSession(text.trim());
                void attempt();
              }}
            >
              <label class="labelled">
                <span>Or paste a token</span>
                <span class="field">
                  <input
                    type="password"
                    autoComplete="off"
                    spellcheck={false}
                    placeholder="evreg_…"
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                  />
                </span>
              </label>
              {wasTyped && readSession() === null && (
                <p class="danger-text" role="alert">
                  {error.message}
                </p>
              )}
              <div>
                <button class="btn main" disabled={text.trim() === "" || isAsking}>
                  Sign in
                </button>
              </div>
            </form>
            <p class="muted">The token stays in this tab and ends with it.</p>
          </>
        )}
      </div>
    </main>
  );
}
