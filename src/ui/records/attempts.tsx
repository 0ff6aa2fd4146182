import { Fragment } from "preact";
import { type Attempt, type DeliveryWithAttempts, isFinal } from "../../domain/delivery.ts";
import { attemptErrorText, tlsReasonText } from "../../domain/words/attempts.ts";
import { retryDefaults } from "../api/session.ts";
import { Copy } from "../parts/copy.tsx";
import { Plain } from "../parts/layout.tsx";
import { Status } from "../parts/states.tsx";
import { durationText, numberText, sizeText, Time, Until, useNow } from "../parts/values.tsx";
import { BAR_WIDTH, barParts, gapText, partsText } from "./attempt-times.ts";
import { type DeliveryProps, waitsFor } from "./delivery.tsx";

/**
 * What was tried with a delivery, and what comes next: a line for each attempt, with the waits between them, then an answer.
 * @param props.picked the attempt whose answer is shown; the newest one, where it is not kept
 * @param props.linkOf the address that picks an attempt
 */
export function Attempts(
  props: DeliveryProps<DeliveryWithAttempts> & {
    readonly picked: number;
    readonly linkOf: (attempt: number) => string;
  },
) {
  const { delivery, subscription, picked, linkOf } = props;
  const { attempts } = delivery;
  const longestMs = Math.max(1, ...attempts.map(({ duration_ms: ms }) => ms));
  const answered = attempts.find(({ attempt }) => attempt === picked) ?? attempts.at(-1);
  const hasParts = attempts.some(({ first_byte_ms: first, dns_ms: dns }) => (first ?? dns) !== null);
  return (
    <div class="attempts">
      <ol>
        {attempts.map((attempt, index) => {
          const before = attempts[index - 1];
          const left = before === undefined ? 0 : attempt.attempt - before.attempt - 1;
          return (
            <Fragment key={attempt.attempt}>
              {before !== undefined && (
                <li class="gap">
                  {left === 0
                    ? gapText(before, attempt, subscription, retryDefaults().retry_schedule)
                    : `${numberText(left)} attempts are not kept`}
                </li>
              )}
              <Line
                attempt={attempt}
                longestMs={longestMs}
                link={attempt.response === null ? undefined : linkOf(attempt.attempt)}
                isPicked={attempt === answered}
              />
            </Fragment>
          );
        })}
        <Next delivery={delivery} subscription={subscription} />
      </ol>
      {hasParts && (
        <p class="parts-legend" aria-hidden="true">
          {Object.entries(LEGEND).map(([kind, words]) => (
            <span key={kind}>
              <svg class="parts" width="10" height="8">
                <rect class={kind} width="10" height="8" />
              </svg>
              {words}
            </span>
          ))}
        </p>
      )}
      {answered !== undefined && <Answer attempt={answered} />}
    </div>
  );
}

const LEGEND = {
  dns: "DNS",
  connect: "Connect",
  first: "First byte",
  rest: "Rest",
  lost: "No answer",
} as const;

function Line(props: {
  readonly attempt: Attempt;
  readonly longestMs: number;
  readonly link: string | undefined;
  readonly isPicked: boolean;
}) {
  const { attempt, longestMs, link, isPicked } = props;
  const { outcome, status_code: code, error_code: error, tls_reason: tls, refusal, consumer } = attempt;
  const result = code === null ? (error ?? outcome) : `HTTP ${code}`;
  const words = error === null ? undefined : attemptErrorText(error, tls);
  const name = `Attempt ${attempt.attempt}`;
  return (
    <li class="try">
      <Status state={outcome === "returned" ? "pending" : outcome} word={false} />
      <Time at={attempt.started_at} exact />
      <span class="what break">
        {link === undefined ? (
          name
        ) : (
          <a href={link} aria-current={isPicked} title="Show its answer">
            {name}
          </a>
        )}{" "}
        <code class={outcome === "failed" ? "danger-text" : "muted"} title={words}>
          {result}
        </code>
        {consumer !== null && <span class="muted"> by {consumer}</span>}
      </span>
      <svg
        class="parts"
        viewBox={`0 0 ${BAR_WIDTH} 8`}
        preserveAspectRatio="none"
        role="img"
        aria-label={partsText(attempt)}
      >
        <title>{partsText(attempt)}</title>
        {barParts(attempt, longestMs).map(({ kind, x, width }) => (
          <rect key={kind} class={kind} x={x} width={width} height="8" />
        ))}
      </svg>
      <span class="took">{durationText(attempt.duration_ms)}</span>
      {refusal !== null && <p class="why danger-text">{refusal}</p>}
      {tls && <p class="why danger-text">The handler: {tlsReasonText(tls)}.</p>}
    </li>
  );
}

/** What comes next, or what it waits for. Nothing for what has ended. */
function Next({ delivery, subscription }: DeliveryProps<DeliveryWithAttempts>) {
  const { rowid, status, attempt, attempts, next_attempt_at: at } = delivery;
  const waits = waitsFor(delivery, subscription, useNow());
  if (isFinal(status)) return null;
  const isPlanned = status === "pending" || status === "waiting";
  const most = (subscription?.max_retries ?? 0) + 1;
  const next = attempt < most ? `Attempt ${attempt + 1} of ${most}` : `Attempt ${attempt + 1}`;
  const now =
    status === "held" ? "Held until its subscription is active again" : `Attempt ${attempt} is under way`;
  const planned = waits === undefined ? next : `Waits ${waits}`;
  return (
    <>
      {attempts.length > 0 && <li class="gap" />}
      <li class="try next soft">
        <Status state={subscription?.blocked_by === rowid ? "blocked" : status} word={false} />
        {at === null ? <span /> : <Time at={at} />}
        <span class="what break">{isPlanned ? planned : now}</span>
        <span class="took">{isPlanned && waits === undefined && at !== null && <Until at={at} />}</span>
      </li>
    </>
  );
}

/** The beginning of what the handler answered, as text. */
function Answer({ attempt }: { readonly attempt: Attempt }) {
  const { response, status_code: code } = attempt;
  if (response === null) {
    return (
      <p class="answer muted">
        {code === null
          ? `No answer to attempt ${attempt.attempt}.`
          : `Answer to attempt ${attempt.attempt}: HTTP ${code}, no body.`}
      </p>
    );
  }
  const bytes = new Blob([response]).size;
  return (
    <section class="answer" aria-label={`Answer to attempt ${attempt.attempt}`}>
      <header>
        <span>Answer to attempt {attempt.attempt}</span>
        <span class="push">{bytes >= 1_000 ? "Its first 1 KiB" : sizeText(bytes)}</span>
        {response !== "" && <Copy text={response} what="the answer" />}
      </header>
      {response !== "" && <Plain>{response}</Plain>}
    </section>
  );
}
