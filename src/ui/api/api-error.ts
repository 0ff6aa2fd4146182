/** What the API answered instead, that it could not be asked (`status` 0), or what the page itself does not send (422). */
export class ApiError extends Error {
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}
