import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** Another program on a port of this machine: what a client meets when the address is wrong, or stands before evreg. */
export async function otherServer(
  listener: RequestListener,
): Promise<{ readonly url: string; readonly close: () => Promise<unknown> }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
