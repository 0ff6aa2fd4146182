import type { Token, TokenWithSecret } from "../domain/token.ts";
import type { Answer, TokensPort } from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import { requestBody } from "./channel.ts";
import type { Channel } from "./channel.ts";

const TOKENS_PATH = "/v1/tokens";

export function tokensOver(channel: Channel): TokensPort {
  return {
    async list() {
      return (await listAnswer(await channel.send("GET", TOKENS_PATH), channel)) as Answer<readonly Token[]>;
    },
    async create(input) {
      return jsonAnswer(
        await channel.send("POST", TOKENS_PATH, { body: requestBody(input) }),
        "token",
      ) as Answer<TokenWithSecret>;
    },
    async revoke(id) {
      return jsonAnswer(await channel.send("DELETE", `${TOKENS_PATH}/${id}`), "token") as Answer<Token>;
    },
  };
}
