import { useEffect, useState } from "preact/hooks";
import type { Identity, TokenWithSecret } from "../../domain/token.ts";
import { dropDrafts, hasDrafts } from "../api/drafts.ts";
import { ApiError, asApiError, ask, askJson } from "../api/resource.ts";
import {
  endSession,
  identity,
  keepSession,
  loseSession,
  lostSession,
  ownTokenId,
  readSession,
} from "../api/session.ts";
import { confirm, sayError } from "../parts/acting.ts";
import { Command } from "../parts/copy.tsx";
import { EXACT, Form } from "../parts/form.tsx";
import { Button } from "../parts/layout.tsx";
import { goTo, linkTo, mayLeave } from "../parts/route.ts";
import { Failed } from "../parts/states.tsx";
import { Time } from "../parts/values.tsx";

/** The code at the end of an address. */
const CODE = /#code=([0-9A-Za-z]+)$/;

// A page that is open already is given a code by its address alone, and begins anew with it.
addEventListener("hashchange", () => {
  if (CODE.test(location.hash)) location.reload();
});

/** The code that `evreg open` put into the address, which it leaves at once: neither history nor links keep it. */
function takeCode(): string | undefined {
  const code = CODE.exec(location.hash)?.[1];
  if (code !== undefined) goTo(lostSession()?.address ?? linkTo([]), { replace: true });
  return code;
}

/** Asks who this tab is, and exchanges the code in the address, if there is one. */
async function signIn(pasted: string): Promise<ApiError | undefined> {
  const code = takeCode() ?? CODE.exec(pasted)?.[1];
  if (code === undefined) return whoIs(pasted === "" ? undefined : pasted);
  if (readSession() !== null) {
    const failure = await whoIs();
    if (failure === undefined) void signInAnew(code);
    if (failure?.status !== 401) return failure;
  }
  const refused = await exchange(code);
  const failure = await whoIs();
  return failure?.status === 401 ? (refused ?? failure) : failure;
}

/** Any other site can lead this tab to a code of its own, so that a person works with a stranger's token. */
async function signInAnew(code: string): Promise<void> {
  const isWanted = await confirm({
    title: "Sign in anew?",
    body: `You are ${identity.value!.name}. This link makes you whoever it is from.`,
    act: "Sign in anew",
  });
  if (!isWanted) return;
  const refused = await exchange(code);
  if (refused === undefined) location.reload();
  else sayError(refused);
}

async function exchange(code: string): Promise<ApiError | undefined> {
  try {
    const sent = { method: "POST", body: { code } };
    const { data } = await askJson<TokenWithSecret>("/v1/tokens/exchange", sent);
    await endOwn();
    keepSession(data.token, data.rowid);
    return undefined;
  } catch (error) {
    return asApiError(error);
  }
}

/** A token that this tab was given for itself ends with it; one that was pasted is somebody's, and is only forgotten. */
async function endOwn(): Promise<void> {
  const id = ownTokenId();
  if (id !== null) await ask(`/v1/tokens/${id}`, { method: "DELETE" }).catch(() => undefined);
}

export async function signOut(): Promise<void> {
  if (!(await mayLeave())) return;
  await endOwn();
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
    const failure = asApiError(error);
    if (failure.status === 401 && token === undefined) loseSession();
    return failure;
  }
}

const IN_A_HEADER = /^[\x21-\x7e]+$/;

/** Says why to somebody who was signed in a moment ago. */
function WhyAnew() {
  const lost = lostSession();
  if (lost === undefined) return null;
  return (
    <p role="status">
      Your sign-in ended at <Time at={new Date(lost.atMs).toISOString()} />.
      {hasDrafts() && " What you typed is kept in this tab: sign in here."}
    </p>
  );
}

/** Shown until the server has said who asks. */
export function SignIn() {
  const [error, setError] = useState<ApiError | undefined>();
  const [isAsking, setAsking] = useState(true);
  const [text, setText] = useState("");
  const [wasTried, setTried] = useState(CODE.test(location.hash));
  const attempt = async (pasted = ""): Promise<void> => {
    setAsking(true);
    setError(await signIn(pasted));
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
            <p class="soft">On a machine where you use evreg, this opens the page and signs you in:</p>
            <Command text="evreg open" />
            <Form class="stack" send={() => tryPasted(text.trim())}>
              <label class="labelled">
                <span>
                  Or paste a token, or the address that <code>evreg open --no-browser</code> prints
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
              {wasTried && readSession() === null && (
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
