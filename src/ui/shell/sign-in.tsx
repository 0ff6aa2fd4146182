import { useEffect, useState } from "preact/hooks";
import type { Identity } from "../../domain/token.ts";
import { dropDrafts, hasDrafts } from "../api/drafts.ts";
import { ApiError, askJson, noted } from "../api/resource.ts";
import { endSession, identity, keepSession, readSessionEnd } from "../api/session.ts";
import { Command } from "../parts/copy.tsx";
import { EXACT, Form } from "../parts/form.tsx";
import { Button } from "../parts/layout.tsx";
import { mayLeave } from "../parts/route.ts";
import { Failed } from "../parts/states.tsx";
import { Time } from "../parts/values.tsx";

export async function signOut(): Promise<void> {
  if (!(await mayLeave())) return;
  endSession();
  dropDrafts();
  identity.value = null;
}

/** Asks who this tab is, or who has a token: a server for development needs none. */
async function whoIs(token?: string): Promise<ApiError | undefined> {
  try {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const { data } = await askJson<Identity>("/v1/whoami", { headers });
    if (token !== undefined) keepSession(token);
    identity.value = data;
    return undefined;
  } catch (error) {
    return noted(error);
  }
}

const IN_A_HEADER = /^[\x21-\x7e]+$/;

/** Says why to somebody who was signed in a moment ago. */
function WhyAnew() {
  const end = readSessionEnd();
  if (end === null) return null;
  return (
    <p role="status">
      Your sign-in ended at <Time at={end} />.
      {hasDrafts() && " What you typed is kept in this tab: sign in here."}
    </p>
  );
}

/** Shown until the server has said who asks. */
export function SignIn() {
  const [error, setError] = useState<ApiError | undefined>();
  const [isAsking, setAsking] = useState(true);
  const [text, setText] = useState("");
  const [wasTried, setTried] = useState(false);
  const attempt = async (pasted?: string): Promise<void> => {
    setAsking(true);
    setError(await whoIs(pasted));
    setAsking(false);
  };
  const tryPasted = (pasted: string): void => {
    setTried(true);
    if (!IN_A_HEADER.test(pasted))
      return setError(new ApiError(401, "This has characters that no token has."));
    void attempt(pasted);
  };
  useEffect(() => void attempt(), []);
  if (isAsking && error === undefined) return <div class="sign-in" aria-busy="true" />;
  const isRefused = error?.status === 401;
  return (
    <main class="sign-in">
      <div class="panel pad stack">
        <h1>Sign in to evreg</h1>
        {isRefused && <WhyAnew />}
        {!isRefused && <Failed error={error} reload={() => void attempt()} />}
        {isRefused && (
          <>
            <p class="soft">
              The server's data folder has its first token. Unless another folder was named, this prints it
              where the server was started:
            </p>
            <Command text="cat .evreg/token" />
            <Form class="stack" send={() => tryPasted(text.trim())}>
              <label class="labelled">
                <span>
                  Paste it here, or one that <code>evreg tokens create</code> has made
                </span>
                <span class="field">
                  <input
                    type="password"
                    {...EXACT}
                    placeholder="evreg_…"
                    value={text}
                    onInput={(event) => setText(event.currentTarget.value)}
                  />
                </span>
              </label>
              {wasTried && (
                <p class="danger-text" role="alert">
                  {error.message}
                </p>
              )}
              <div>
                <Button look="main" disabled={text.trim() === "" || isAsking} label="Sign in" />
              </div>
            </Form>
            <p class="muted">The token stays in this tab and ends with it.</p>
          </>
        )}
      </div>
    </main>
  );
}
