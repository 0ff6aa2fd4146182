import { describe, expect, it } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { checkHandlerUrl, literalAddress, type HandlerPolicy } from "../../src/domain/handler-url.ts";

const PUBLIC: HandlerPolicy = { allowHttp: false, allowNetworks: [] };
const DEV: HandlerPolicy = { allowHttp: true, allowNetworks: ["127.0.0.0/8", "::1/128"] };

function refusal(handler: unknown, policy = PUBLIC): EvregError {
  try {
    checkHandlerUrl("handler", handler, policy);
  } catch (error) {
    if (error instanceof EvregError) return error;
    throw error;
  }
  throw new Error(`accepted ${String(handler)}`);
}

const words = (text: string): string[] => text.trim().split(/\s+/);

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
    "http://example.com/",
    "ftp://example.com/",
    "file:///etc/passwd",
    "data:text/plain,a",
    "javascript:alert(1)",
    "gopher://example.com/",
    "ws://example.com/",
    "wss://example.com/",
    "blob:https://example.com/1",
    "mailto:a@example.com",
    "//example.com/a",
    "/webhooks",
    "example.com",
    "example.com:443/a",
    "https:",
    "https:/",
    "https://",
    "https:///",
    "https:example.com",
    "https:/example.com",
    "https:///example.com/",
    "https:\\\\example.com\\a",
    "https://example.com\\@evil.example/",
    " https://example.com/",
    "https://example.com/ ",
    "https://example.com/a b",
    "https://exa\tmple.com/",
    "https://example.com/\n",
    "https://example.com/\r\nHost: other",
    "https://example.com/\0",
    "https://example.com/\u00a0",
    "https://example.com:99999/",
    "https://example.com:0/",
    "https://example.com:x/",
    "https://exa%mple.com/",
    "https://[::1/",
    "https://[fe80::1%25eth0]/",
    "https://256.256.256.256/",
    "https://1.2.3.4.5/",
    "https://example.com/#fragment",
    "https://example.com/#",
    "https://example.com/\ud800",
    "",
    "null",
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

  // Spellings of addresses that must not be reached; the URL parser or the rules have to see through each.
  it.each(
    words(`
    127.0.0.1 127.1 127.0.1 127.000.000.001 0177.0.0.1 0177.0.0.01 0x7f.0.0.1 0x7f.1 0x7f000001
    0X7F000001 2130706433 017700000001 127.0.0.1. 127.1. 2130706433. １２７.０.０.１ 127。0。0。1 127．0．0．1
    ①②⑦.0.0.1 %31%32%37.0.0.1 127%2e0%2e0%2e1 localhost LOCALHOST localhost. loc%61lhost ｌｏｃａｌｈｏｓｔ
    a.localhost a.b.localhost. 0 0.0.0.0 0x0 00 0.0 [::] [::1] [0:0:0:0:0:0:0:1] [0000::0001]
    [::127.0.0.1] [::7f00:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:1]
    [64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::127.0.0.1] [2002:7f00:1::] [2001:0:7f00:1::]
    [fe80::1] [fc00::1] [fd00:ec2::254] 169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376
    169.254.43518 [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [64:ff9b::a9fe:a9fe] 168.63.129.16
    0xa83f8110 100.100.100.200 192.0.0.192 10.0.0.1 10.1 0xa000001 012.0.0.1 172.16.1 192.168.1.1
    192.168.257 0300.0250.0.1 3232235777 255.255.255.255 4294967295 0xffffffff 224.0.0.1 198.18.0.1
    192.0.2.1 203.0.113.5 100.64.0.1 240.0.0.1`),
  )("https://%s/", (host) => {
    expect(refusal(`https://${host}/`).message).toContain("not allowed");
    expect(refusal(`https://${host}:8443/a`).message).toContain("not allowed");
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
  for (const handler of [
    "http://127.0.0.1:9000/",
    "http://example.com/",
    "https://localhost/",
    "https://[::1]/",
  ]) {
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
