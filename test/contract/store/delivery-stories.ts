import { describe, it } from "vitest";
import { Fixture, type OpenStore } from "./fixture.ts";
import { Story } from "./story.ts";

const ATTEMPTS = `
a delivery is leased once, and only when it is due
  publish 1 at 10s; wait 9999ms; claim nothing until 1ms; wait 1ms; claim 1; claim nothing
a result counts once, and only while its claim is valid
  publish 1; claim 1; wait 30s; release 1; claim 1; late 1; status 1 delivering
  deliver 1; late 1; tried 1 returned delivered
a lease ends after its time, and no sooner
  publish 1; claim 1; wait 29999ms; release; wait 1ms; release 1; release; status 1 pending in 0s; claim 1(0)
nothing is stored of one that was not started
  publish 1; wait 1m; claim 1; return 1; late 1; status 1 pending in -1m; tried 1 nothing; claim 1(0)
what is filtered ends without an attempt, and a person can send it; what its attempts showed stays
  publish 1; claim 1; filter 1; late 1; status 1 filtered; tried 1 nothing; claim nothing; retry 1; claim 1(0)
  fail 1; retry 1; claim 1(0); filter 1; status 1 filtered; tried 1 failed; refuse skip 1 (nothing of it is left)
the longest due of a subscription comes first
  publish 1; claim 1; fail 1 for 2s; wait 1s; publish 1; wait 1s; claim only 2; claim 1(1)
a handler that is gone deactivates its subscription, and the others are held
  publish 3; claim only 1; gone 1; deactivated (The handler answered 410 Gone.); list failed 1; list held 3 2
  claim nothing; resume; active; claim 2 3
a deleted subscription keeps its history, and what is unfinished is cancelled
  publish 3; claim only 1; deliver 1; claim only 2; delete; list delivered 1; list delivering 2; list cancelled 3
  backlog nothing; pending 1; fail 2 for 1h; list cancelled 3 2; pending 2; claim nothing
  refuse skip 2 (it is cancelled); refuse retry 2 (was deleted)
nothing is claimed of a subscription that is slowed, and nothing counts against retries meanwhile
  publish 3; claim only 1; fail 1 for 2s slow 1h; claim nothing until 1h; slowed 1h; wait 1h; claim 1(1) 2(0) 3(0)
it is known what comes due after a slowness has ended
  publish 1; claim 1; fail 1 for 9s slow 5s; claim nothing until 9s
a slowness is never shortened, and ends for another handler or when a person says so
  publish 4; claim 1 2 3 4; fail 1 slow 1h; fail 2 slow 1s; pause; slowed 1h; failing 0s; resume; slowed nothing
  failing nothing; fail 3 slow 1h; move; slowed nothing; fail 4 slow 1h; slowed nothing; claim 1 2 3 4
what a person requests is claimed at once, before newer ones that have waited, and ends a slowness
  publish 5; claim only 1; deliver 1; wait 1s; claim only 2; fail 2 for 1s slow 1h; claim nothing; retry 1
  status 1 pending in -1s; slowed nothing; claim only 1(0); claim 3 4 5; fail 1 for 2s; wait 1s; claim 2; wait 1s
  claim 1(1)
a subscription whose attempts all fail for the time given is deactivated, and starts anew
  retries 100; schedule 0s; disabled after 5h; publish 1; claim 1; fail 1; wait 1h; claim 1; fail 1; wait 1h
  claim 1; fail 1; wait 1h; claim 1; fail 1; wait 1h; claim 1; fail 1; wait 1h; failing -5h; claim 1; fail 1
  deactivated (Every attempt since); list held 1; claim nothing; wait 9h; resume; active; claim 1; fail 1; failing 0s
a long time without an attempt deactivates no subscription, and a success starts anew
  retries 100; schedule 0s; disabled after 5h; publish 1; claim 1; fail 1; wait 720h; claim 1; fail 1; wait 1h
  claim 1; fail 1; wait 1h; claim 1; fail 1; wait 1h; claim 1; fail 1; active; failing -723h; publish 1; claim 1 2
  deliver 2; failing nothing; fail 1; failing 0s; wait 1h; claim 1; fail 1; active
`;

const ORDERED = `
are claimed in the order of publication, and not while one of them is leased
  publish 5; claim 1; claim nothing; deliver 1 (next is due); drain 2 3 4 5
lease the next one with a result that asks for it, and no more than that
  publish 3; claim 1; deliver 1 and take 2 (none is due); claim nothing; deliver 2 (next is due); drain 3
lease no next one of a paused subscription, or where it is not due yet
  publish 3; claim 1; pause; deliver 1 and take nothing; resume; claim 2
  fail 2 for 5s and take nothing; wait 5s; claim 2; deliver 2 and take 3
keep the order whatever the clock did
  publish 2; publish 2 at -1h; publish 2 at -24h; publish 2 at 24h; publish 2; drain 1 2 3 4 5 6 7 8 9 10
wait for the retry of their first delivery, which then goes first
  publish 3; claim 1; fail 1 for 1h; claim nothing until 1h; status 1 waiting in 1h; status 3 pending in nothing
  wait 1h; drain 1 2 3
keep the place of one that was interrupted
  publish 3; claim 1; interrupt 1; drain 1 2 3
keep the place of one that was never started
  publish 3; claim 1; return 1; drain 1 2 3
keep the place of what a dead worker had leased
  publish 4; claim 1; deliver 1; claim 2; wait 29999ms; claim nothing; wait 1ms; release 2; late 2; drain 2 3 4
keep trying a delivery that used up its retries, and block those after it
  retries 0; schedule 0s; publish 2; claim 1(0); fail 1; claim nothing; wait 1s; claim 1(1); fail 1; wait 1s
  claim 1(2); fail 1; wait 1s; drain 1 2
with skip, continue after one that used up its retries
  exhausted skip; publish 3; claim 1; fail 1; claim 1(1); fail 1 for 1h; status 1 failed; drain 2 3
continue after the next attempt of what blocks them when they are changed to skip
  retries 0; publish 3; claim 1; fail 1 for 1h; exhausted skip; blocked by nothing; claim nothing; wait 1h; claim 1
  fail 1; status 1 failed; drain 2 3
continue after the next attempt of one without retries left when they get fewer and skip
  exhausted skip; retries 5; publish 3; claim 1; fail 1 for 1h; retries 0; replay waiting 1; claim 1; fail 1
  status 1 failed; drain 2 3
keep trying what blocks them, however few retries they are given
  retries 5; publish 3; claim 1; fail 1 for 1h; retries 0; claim nothing; wait 1h; drain 1 2 3
report what blocks them from its last retry until it is accepted or gets more
  publish 2; claim 1; fail 1; blocked by nothing; claim 1; fail 1 for 1h; blocked by 1; backlog waiting 1 blocked 1
  retries 2; blocked by nothing; retries 1; blocked by 1; wait 1h; claim 1; deliver 1; blocked by nothing
continue at once after one that a person skips, and after no other
  retries 0; publish 3; claim 1; fail 1 for 1h; refuse skip 2 (no attempt of it has failed so far); refuse skip 3 (another delivery goes before it)
  claim nothing; skip 1; status 1 failed; blocked by nothing; refuse skip 1; drain 2 3
let a person retry what blocks them, and nothing behind it
  retries 0; publish 2; refuse retry 2 (is ordered, and another delivery goes before it)
  claim 1; fail 1 for 1h; retry 1; claim 1; deliver 1; refuse retry 2 (it is on its way already)
continue at once when a person retries the first one with success
  publish 2; claim 1; fail 1 for 6h; retry 1; drain 1 2
send what a person retries in its place
  exhausted skip; retries 0; publish 4; claim 1; deliver 1; claim 2; fail 2; claim 3; fail 3; retries 5
  retry 2; retry 1; claim 1; claim nothing; fail 1 for 1h; claim nothing; wait 1h; drain 1 2 4
are deactivated when the handler is gone, and one to block keeps its place
  publish 2; claim 1; gone 1; deactivated (410); list held 2 1; resume; drain 1 2
are deactivated when the handler is gone, and one to skip has failed
  exhausted skip; publish 2; claim 1; gone 1; deactivated (410); list held 2; list failed 1; resume; drain 2
continue in place when another handler was set before the former one was gone
  exhausted skip; publish 2; claim 1; move; gone 1; drain 1 2
put replayed deliveries in their places
  pause; publish 2; resume; publish 3; claim 3; deliver 3; replay all 3; drain 1 2 3 4 5
continue after a pause, and count what is held
  publish 3; claim 1; fail 1 for 1h; pause; wait 24h; claim nothing; backlog held 3; resume; drain 1 2 3
keep the order over several actions
  publish 2; bind other; publish 2; drain 1 2 3 4
order what is published while they are ordered, and nothing else
  order none; retries 0; publish 2; order whole; publish 2; claim 1 2 3; fail 1; blocked by nothing
  order none; publish 2; claim 5 6; deliver 3; claim 4
keep their order where they are ordered no more, also when a person retries the first one
  publish 2; claim 1; fail 1 for 1h; order none; claim nothing; retry 1; drain 1 2
continue after what blocks them, once a person skips it, when they are ordered no more
  retries 0; publish 3; claim 1; fail 1 for 1h; order none; claim nothing; skip 1; drain 2 3
`;

const KEYED = `
get the first of each key side by side, and the next when its result is stored
  publish a b a c a; claim 1 2 4; claim nothing; deliver 1 (next is due); claim 3; deliver 2 (none is due)
  deliver 3; claim 5
keep a failed one before the others of its key, and hold up no other key
  publish a b a b; claim 1 2; fail 1 for 1h; deliver 2; claim 4; deliver 4; wait 1h; drain 1 3
block a key whose delivery has used up its retries, and show the first
  retries 0; publish a b a b c; claim 1 2 5; fail 1 2 for 1h; deliver 5; claim nothing; slowed nothing
  blocked by 1; backlog waiting 2 blocked 2; skip 1; blocked by 2; claim 3
put replayed events, and what a person requested, before later ones of their key
  exhausted skip; retries 0; pause; publish a b; resume; publish a a a; claim 3; deliver 3; claim 4
  replay missed 2; retry 3; deliver 4; claim 1 2; deliver 1 2; drain 3 5
list, count and hold what waits behind others like all that waits
  publish a b a; claim 1 2; list pending 3; status 3 pending in nothing; keyed a 3 1; keyed "a" 3 1; keyed c
  refuse retry 3 (another delivery goes before it); backlog waiting 1 delivering 2; pause; list held 3; pending 1
  refuse retry 3 (make its subscription active first); backlog delivering 2 held 1; delete; list cancelled 3
  fail 1 2; list cancelled 3 2 1
keep the keys of what waits while they are ordered otherwise
  publish a/x a/y; order /l; publish a/x b/x; claim 1 3; deliver 1 3; claim 2 4
have those wait for each other that have no such value
  publish 2; publish a; claim 1 3; deliver 1; claim 2
`;

const WAITING = `
makes them due, with all their retries, and nothing else
  publish 5; claim 1 2 3 4 5; fail 1 2 3 4 5 for 1h; publish 1; replay waiting 5; count waiting 0
  claim 1(0) 2(0) 3(0) 4(0) 5(0) 6(0)
takes none a second time that fails again, and none that is under way
  publish 3; claim 1 2 3; fail 1 2 3 for 1h; retry 3; claim 3; fail 3 for 1ms; wait 2ms; claim 3
  count waiting 2; start waiting; advance 2; claim 1 2; fail 1 2 for 1h; advance end
ends a slowness
  publish 1; claim 1; fail 1 for 2h slow 1h; replay waiting 1; slowed nothing; claim 1(0)
keeps an order: its first goes again at once
  order whole; publish 3; claim 1; fail 1 for 1h; claim nothing; replay waiting 1; claim 1(0); deliver 1; claim 2
keeps the order of each key
  order /k; publish a b a; claim 1 2; fail 1 2 for 1h; replay waiting 2; claim 1 2; deliver 1 2; claim 3
`;

const REPLAYS = `
of what failed makes it due again with all its retries, its attempts counting on
  retries 0; publish 4; claim 1 2 3 4; fail 2 4; deliver 1 3; replay failed 2; claim 2(0) 4(0)
of what failed leaves out what failed of an action that it had before
  retries 0; publish 1; claim 1; fail 1; bind now; publish 1; claim 2; fail 2; replay failed 1; claim 2(0)
of what was missed makes deliveries for events that have none, and only for those of its present action
  publish 1; pause; publish 1; resume; bind now; publish 1; pause; publish 2; resume; claim 1 3; deliver 1 3
  replay missed 2; claim 4 5; deliver 4 5; count missed 0
of all sends every event again that has no unfinished delivery
  retries 0; pause; publish 2; resume; publish 3; claim 3 4 5; deliver 3; fail 4; filter 5; publish 1
  count failed 1; count missed 2; replay all 5; claim 1 2 3 4 5 6
waits like all else for a handler that is slowed
  publish 1; claim 1; deliver 1; publish 1; claim 2; fail 2 for 1h slow 1h; replay all 1
  claim nothing until 1h
never has an event that was published after its start
  pause; publish 3; start missed; publish 3; resume; advance 3; advance end
ends with its subscription
  pause; publish 2; resume; start missed; delete; advance end; ended cancelled (The subscription was deleted.)
ends when its subscription is bound to another action
  pause; publish 2; resume; start missed; bind b; advance end; list pending
  ended failed (The subscription was bound to another action, b.)
ends when it is cancelled, and leaves what it made due
  pause; publish 5; resume; start missed; advance 2; cancel; advance end; cancel; list pending 2 1
`;

const REMOVALS = `
keeps what has an unfinished delivery, one that is held too, until that was cancelled and is not under way
  retries 0; publish 2; claim 1 2; deliver 1; fail 2; retries 5; publish 1; claim 3; fail 3 for 1h; publish 1
  claim 4; publish 1; pause; publish 1; remove 3; events 3 4 5; delete; remove 2; events 4; fail 4; remove 1
  list cancelled
`;

const REPORTED = `
a delivery that fails for good, once
  retries 0; publish 2; claim 1 2; fail 1; reported failed 1; late 1; fail 2; reported failed 1 2
a delivery that fails as a person skips it
  order whole; retries 0; publish 1; claim 1; fail 1; reported failed; skip 1; reported failed 1
no delivery that is retried, was delivered, cut short or never started
  publish 4; claim 1 2 3 4; deliver 1; fail 2; interrupt 3; return 4; late 2; reported failed
a subscription that is blocked, once for each time that it begins to be
  order whole; retries 1; schedule 0s; publish 2; claim 1; fail 1; reported blocked; claim 1; fail 1
  reported blocked 1; wait 1s; claim 1; fail 1; retries 5; retries 1; reported blocked 1
a subscription that evreg deactivates, and no pause by a person
  publish 2; claim 1 2; gone 1; reported deactivated (The handler answered 410 Gone.); resume; pause
  reported deactivated (The handler answered 410 Gone.)
how replays end: done, cancelled, failed, or with their subscription
  pause; publish 3; resume; replay missed 3; replays done; start all; cancel; cancel
  replays done cancelled; start all; bind other; replays done cancelled failed
  start all; delete; replays done cancelled failed cancelled
`;

const BACKLOG = `
nothing at first, and nothing of what has ended
  backlog; retries 0; publish 2; claim 1 2; deliver 1; fail 2; backlog
each unfinished delivery once, by what it waits for
  publish 5; wait 10s; backlog due 5 since -10s; claim only 1 2 3; deliver 1; fail 2 for 30s
  backlog busy 2 since -10s waiting 1 delivering 1 since 0s; wait 30s; backlog busy 3 since -40s delivering 1
  deliver 3; backlog due 3 since -40s
what is held by itself, and nothing of a deleted subscription
  publish 2; wait 1s; pause; backlog held 2 since -1s; delete; backlog
what a throttled handler is to get as waiting
  publish 5; wait 1m; claim only 1 2 3; fail 1 slow 4m; fail 2 for 30s; wait 2m
  backlog waiting 4 delivering 1 since -2m; wait 2m
  backlog busy 4 since 0s delivering 1; wait 5s; backlog busy 4 since -5s delivering 1 since -4m5s
the first of an order as due at its time, and those after it as waiting
  order whole; publish 4; backlog due 1 since 0s waiting 3; claim 1; backlog waiting 3 delivering 1 since 0s
  fail 1 for 30s; backlog waiting 4; wait 37s; backlog due 1 since -7s waiting 3
the next of an order as due since it was made
  order whole; publish 2; wait 5s; claim 1; deliver 1; backlog due 1 since -5s
what blocks, and what is behind it, since it was made
  order whole; retries 0; publish 3; wait 1s; claim 1; fail 1 for 1h; backlog waiting 1 blocked 2 since -1s
  pause; backlog held 3
what a rate limit delays by itself
  rate 2; publish 3; backlog paced 3 since 0s; pause; backlog held 3
`;

/** The title of each story, and its steps. */
function storiesIn(text: string): readonly (readonly [title: string, steps: readonly string[]])[] {
  const stories = text.trim().split(/\n(?! )/);
  return stories.map((story) => {
    const [title = "", ...lines] = story.split("\n");
    return [title, lines.flatMap((line) => line.split(";")).map((step) => step.trim())];
  });
}

/** What becomes of deliveries, in steps: see `Story`. */
export function deliveryStorySuite(open: OpenStore): void {
  const on = Fixture.use(open);
  describe.each([
    ["attempts and handlers", [], ATTEMPTS],
    // That is an order by one key that all events have, so what holds for it holds for each key.
    ["deliveries that are ordered as a whole", ["order whole", "retries 1"], ORDERED],
    ["deliveries that are ordered by several keys", ["order /k", "retries 1"], KEYED],
    ["the backlog counts", [], BACKLOG],
    ["a replay", [], REPLAYS],
    ["a replay of what waits", [], WAITING],
    ["the removal of old events", [], REMOVALS],
    ["to those who watch is reported", ["watched"], REPORTED],
  ])("%s", (_, before, text) => {
    it.each(storiesIn(text))("%s", (_title, steps) => new Story(on).happen([...before, ...steps]));
  });
}
