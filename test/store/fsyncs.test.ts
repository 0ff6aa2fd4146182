import { expect, it } from "vitest";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

it("counts an fsync for each durable commit, none for one that may be later, and three as the log restarts", () => {
  const connection = openFile(`${scratch.path}/evreg.db`);
  const fsyncsOf = (bytes: number, durable: "now" | "later"): number => {
    connection.write(
      (sql) => sql.run("INSERT OR REPLACE INTO write_check (one, filler) VALUES (1, zeroblob(?))", bytes),
      durable,
    );
    return connection.lastFsyncs;
  };
  expect(fsyncsOf(1, "now")).toBe(1);
  expect(fsyncsOf(1, "later")).toBe(0);
  // More than the log may hold: it is moved into the file.
  expect(fsyncsOf(20_000_000, "now")).toBe(1);
  expect(fsyncsOf(1, "now")).toBe(4);
  expect(fsyncsOf(1, "now")).toBe(1);
  connection.close();
});
