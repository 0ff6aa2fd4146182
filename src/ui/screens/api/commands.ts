/** The command that does what an operation does, with its parameters in braces; not every operation has one. */
const COMMANDS: Readonly<Record<string, string>> = {
  listActions: "evreg actions",
  createAction: "evreg actions create NAME --application APP --schema schema.json",
  getAction: "evreg actions get {name}",
  updateAction: "evreg actions update {name} --schema schema.json",
  listActionRevisions: "evreg actions history {name}",
  checkAction: "evreg actions check {name} --schema schema.json",
  sampleAction: "evreg actions sample {name}",
  getActionTypes: "evreg actions types {name}",
  publishEvent: "evreg publish ACTION --file payload.json",
  listEvents: "evreg events",
  publishBatch: "evreg publish --batch events.jsonl",
  getEvent: "evreg events get {id}",
  listEventDeliveries: "evreg events deliveries {id}",
  listSubscriptions: "evreg subscriptions",
  createSubscription:
    "evreg subscriptions create --application APP --subscription NAME --action ACTION --handler URL",
  getSubscription: "evreg subscriptions get {id}",
  listSubscriptionAttempts: "evreg subscriptions attempts {id}",
  updateSubscription: "evreg subscriptions update {id}",
  deleteSubscription: "evreg subscriptions delete {id}",
  rotateSubscriptionSecret: "evreg subscriptions rotate-secret {id}",
  testSubscription: "evreg subscriptions test {id}",
  replaySubscription: "evreg subscriptions replay {id}",
  claimDeliveries: "evreg listen",
  listDeliveries: "evreg deliveries",
  getDelivery: "evreg deliveries get {id}",
  retryDelivery: "evreg deliveries retry {id}",
  skipDelivery: "evreg deliveries skip {id}",
  listReplays: "evreg replays",
  getReplay: "evreg replays get {id}",
  cancelReplay: "evreg replays cancel {id}",
  listTokens: "evreg tokens",
  createToken: "evreg tokens create NAME --scope read",
  revokeToken: "evreg tokens revoke {id}",
  stream: "evreg events tail",
  listAudit: "evreg audit",
  whoAmI: "evreg whoami",
  getMetrics: "evreg metrics",
  examine: "evreg doctor",
  listNodes: "evreg nodes",
  listAttention: "evreg attention",
  getBackup: "evreg backup copy.db",
};

export const commandFor = (operationId: string): string | undefined => COMMANDS[operationId];

/** What cannot be shown as one answer here. */
export const NOT_TRIED: Readonly<Record<string, string>> = {
  stream: "It goes on until it is closed. Events shows the same, live.",
  getBackup: "Its answer is a whole data file, for a program to store.",
};

/** What cannot be taken back, and what to say of it before. */
export const CANNOT_BE_UNDONE: Readonly<Record<string, string>> = {
  deleteSubscription: "Its unfinished deliveries are cancelled.",
  revokeToken: "Whoever uses it is refused from now on.",
  rotateSubscriptionSecret: "Handlers must know the new secret before the overlap ends.",
  skipDelivery: "It is given up, and its handler does not get the event.",
  cancelReplay: "What it has not made due yet is not sent.",
};
