import { expect, it } from "vitest";
import { ID_MARK, RequestBytes } from "./request-bytes.ts";

it("writes a new number at each mark of each request", () => {
  const body = `["${ID_MARK}","${ID_MARK}"]`;
  const request = new RequestBytes({ method: "POST", path: "/v1", body }, "127.0.0.1:1", "secret");
  expect(request.number(99)).toBe(101);
  expect(request.number(12_345_678)).toBe(12_345_680);
  expect(request.bytes.toString()).toBe(
    "POST /v1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer secret\r\n" +
      'Content-Type: application/json\r\nContent-Length: 23\r\n\r\n["12345678","12345679"]',
  );
});

it("sends a GET without a body", () => {
  const request = new RequestBytes({ method: "GET", path: "/v1/events?limit=1" }, "127.0.0.1:1");
  expect(request.number(1)).toBe(1);
  expect(request.bytes.toString()).toBe("GET /v1/events?limit=1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n");
});
