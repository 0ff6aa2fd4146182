/** Processor time that this thread has used. A limit of it holds on a busy machine too, which one of time would not. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
