import { evregEngineContract, evregServiceContract } from "../contract/evreg.ts";
import type { EvregUnderTest } from "../contract/harness.ts";
import { useConformingAnswers } from "../http/conforming.ts";
import { startHarness } from "../http/harness.ts";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";

async function openOverHttp(): Promise<EvregUnderTest> {
  const harness = await startHarness({ reads: false });
  const opened: Evreg[] = [];
  const as = async (scopes: readonly string[]): Promise<Evreg> => {
    const evreg = connect({ url: harness.url, token: await harness.token(...scopes) });
    opened.push(evreg);
    return evreg;
  };
  return {
    evreg: await as(["admin"]),
    as,
    store: harness.local.store,
    clock: harness.local.clock,
    async close() {
      for (const evreg of opened) await evreg.close();
      await harness.close();
    },
  };
}

useConformingAnswers();
evregServiceContract(openOverHttp);
evregEngineContract(openOverHttp);
