// What may other programs use? An embedded cluster, the client's types, and the objects; all else is ours to change.
export { startEmbedded as startHawser } from './main/embedded.ts'
export type { EmbeddedHawser as Hawser, EmbeddedOptions as HawserOptions, WaitOptions } from './main/embedded.ts'
export type { ChooseFault, Fault } from './csi/faults.ts'
export type { Explanation } from './why/explain.ts'
export type { SubjectKind, WhySubject } from './why/facts.ts'
export { runCheckedSimulation as runSimulation } from './main/simulation.ts'
export type { SimulationOptions, SimulationResult } from './sim/simulator.ts'
export type { ObjectRef } from './api/meta.ts'
export type { Client } from './client/client.ts'
export type {
  ListOptions,
  ObjectList,
  Patch,
  RemoveOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from './api/verbs.ts'
export { createCheckedHttpClient as createHttpClient } from './main/checked-client.ts'
export type { HttpClient, HttpConfig } from './client/http.ts'
export { kinds } from './api/kinds.ts'
export type { KindMap, KindName } from './api/kinds.ts'
export {
  isAlreadyExists,
  isConflict,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooOld,
  StatusError,
} from './api/status-error.ts'
export { bytesOfQuantity, compareQuantities, quantityOfBytes } from './api/quantity.ts'
export { UsageError } from './installation/config.ts'
export { createLog } from './telemetry/log.ts'
export type { Log } from './telemetry/log.ts'
export type * from './api/generated/types.ts'
