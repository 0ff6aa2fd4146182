import type { DeliveryStatus } from "../domain/delivery.ts";

export interface DeliverySelection {
  readonly event?: number;
  readonly subscription?: number;
  readonly action?: string;
  readonly status?: DeliveryStatus;
  readonly applications?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly limit: number;
  readonly after?: number;
}
