// What may other programs use? An embedded cluster, the client's types, and the objects; all else is ours to change.
export { startEmbedded as startHawser } from './main/embedded.ts'
export type { EmbeddedHawser as Hawser, EmbeddedOptions as HawserOptions } from './main/embedded.ts'
export type {
  Client,
  ListOptions,
  ObjectList,
  Patch,
  RemoveOptions,
  WatchEvent,
  WatchOptions,
} from './client/client.ts'
export { createHttpClient } from './client/http.ts'
export type { HttpClient, HttpConfig } from './client/http.ts'
export { kinds } from './api/kinds.ts'
export type { KindMap, KindName } from './api/kinds.ts'
export { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound, StatusError } from './api/status-error.ts'
export { bytesOfQuantity, compareQuantities, quantityOfBytes } from './api/quantity.ts'
export { UsageError } from './main/config.ts'
export { createLog } from './telemetry/log.ts'
export type { Log } from './telemetry/log.ts'
export type * from './api/types.ts'
