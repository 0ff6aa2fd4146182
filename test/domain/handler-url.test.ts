import { describe, expect, it } from "vitest";
import type { EvregError } from "../../src/domain/error.ts";
import { checkHandlerUrl, literalAddress, type HandlerPolicy } from "../../src/domain/handler-url.ts";
import { words } from "../support/words.ts";
import { refusal as refusalOf } from "./refusal.ts";

const PUBLIC: HandlerPolicy = { allowHttp: false, allowNetworks: [] };
const DEV: HandlerPolicy = { allowHttp: true, allowNetworks: ["127.0.0.0/8", "::1/128"] };

function refusal(handler: unknown, policy = PUBLIC): EvregError {
  return refusalOf(() => checkHandlerUrl("handler", handler, policy));
}

describe("a valid handler", () => {
  it.each(
    words(`
    https://example.com https://example.com/ https://example.com/webhooks?source=evreg&x=%20
    https://example.com:8443/a https://EXAMPLE.com/A HTTPS://example.com/a https://sub.example.co.uk./a
    https://xn--bcher-kva.example/a https://bücher.example/a https://1.1.1.1/a
    https://[2606:4700:4700::1111]/a https://example.com/a@b:c https://example.com/?q=a@b
    https://example.com/./a/../b//c https://localhost.example.com/ https://notlocalhost/`),
  )("%s is kept as it was given", (handler) => {
    expect(checkHandlerUrl("handler", handler, PUBLIC)).toBe(handler);
  });

  it.each(
    words(`
    http://127.0.0.1:9000/a http://localhost:9000/a http://[::1]:9000/ https://127.1/
    http://app.localhost/ http://2130706433/`),
  )("%s is allowed where loopback and http: are", (handler) => {
    expect(checkHandlerUrl("handler", handler, DEV)).toBe(handler);
  });

  it("has at most 2,048 characters", () => {
    const longest = `https://example.com/${"a".repeat(2_048 - 20)}`;
    expect(longest).toHaveLength(2_048);
    expect(checkHandlerUrl("handler", longest, PUBLIC)).toBe(longest);
    expect(refusal(`${longest}a`).message).toContain("2049 characters");
  });
});

describe("an invalid handler", () => {
  it.each([
    ...words(`
    http://example.com/ ftp://example.com/ file:///etc/passwd data:text/plain,a javascript:alert(1)
    gopher://example.com/ ws://example.com/ wss://example.com/ blob:https://example.com/1
    mailto:a@example.com //example.com/a /webhooks example.com example.com:443/a https: https:/ https://
    https:/// https:example.com https:/example.com https:///example.com/ https://example.com:99999/
    https://example.com:0/ https://example.com:x/ https://exa%mple.com/ https://[::1/
    https://[fe80::1%25eth0]/ https://256.256.256.256/ https://1.2.3.4.5/ https://example.com/#fragment
    https://example.com/# https:\\\\example.com\\a https://example.com\\@evil.example/`),
    " https://example.com/",
    "https://example.com/ ",
    "https://example.com/a b",
    "https://exa\tmple.com/",
    "https://example.com/\n",
    "https://example.com/\r\nHost: other",
    "https://example.com/\0",
    "https://example.com/\u00a0",
    "https://example.com/\ud800",
    "",
  ])("%j", (handler) => {
    const error = refusal(handler);
    expect(error.code).toBe("invalid");
    expect(error.details).toMatchObject({ field: "handler" });
  });

  it.each([undefined, null, 1, true, {}, [], ["https://example.com"]])(
    "%j, which is not a string",
    (handler) => {
      expect(refusal(handler).code).toBe("invalid");
    },
  );

  it.each([
    "https://user:hunter2@example.com/",
    "https://user@example.com/",
    "https://:hunter2@example.com/",
    "https://@example.com/",
    "https:user:hunter2@example.com",
    "https:\\\\user:hunter2@example.com/",
    "https://user:hunter2@exa mple.com/",
  ])("%s, and its password is not repeated", (handler) => {
    const error = refusal(handler);
    expect(error.message).toContain("user name or password");
    expect(JSON.stringify(error.body())).not.toContain("hunter2");
  });

  it("is refused where only loopback is allowed", () => {
    for (const host of ["10.0.0.1", "169.254.169.254", "[fd00::1]", "0.0.0.0", "[::]"]) {
      expect(refusal(`http://${host}/`, DEV).message, host).toContain("not allowed");
    }
    expect(
      refusal("http://localhost/", { allowHttp: true, allowNetworks: ["10.0.0.0/8"] }).message,
    ).toContain("loopback");
  });
});

it("a developer is told what allows addresses of their own machine", () => {
  for (const handler of words(
    "http://127.0.0.1:9000/ http://example.com/ https://localhost/ https://[::1]/",
  )) {
    expect(refusal(handler).message, handler).toContain("evreg serve --dev");
  }
  expect(refusal("https://10.0.0.1/").message).not.toContain("--dev");
});

it("a refusal says what the address is, and what an operator has to allow", () => {
  expect(refusal("https://012.1/").message).toContain("10.0.0.1 is a private network.");
  expect(refusal("https://012.1/").message).toContain("delivery.allowNetworks, this one with 10.0.0.1/32");
  expect(refusal("https://[fd00::1]/").message).toContain("fd00::1 is a private network");
  expect(refusal("https://[fd00::1]/").message).toContain("this one with fd00::1/128");
  expect(refusal("https://localhost/").message).toContain("127.0.0.1 is loopback");
  expect(refusal("https://169.254.169.254/").message).toContain(
    "169.254.169.254 is a cloud's metadata service",
  );
});

describe("literalAddress", () => {
  it("is the address without brackets, or undefined for a name", () => {
    expect(literalAddress(new URL("https://0x7f.1/"))).toBe("127.0.0.1");
    expect(literalAddress(new URL("https://[::1]:1/"))).toBe("::1");
    expect(literalAddress(new URL("https://example.com/"))).toBeUndefined();
    expect(literalAddress(new URL("https://localhost./"))).toBeUndefined();
  });
});
