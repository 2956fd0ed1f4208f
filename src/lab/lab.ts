// What does a check see? The driver's calls, what it says of itself, a place for mounts, and a list of what to undo.
import type { Clock } from '../clock/clock.ts'
import { createCall } from '../csi/deadline.ts'
import type { Controller, Identity, Node } from '../csi/generated/csi_pb.ts'
import * as csi from '../csi/generated/csi_pb.ts'
import { unaryClient } from '../csi/service.ts'
import type { Transport, UnaryClient } from '../csi/service.ts'
import type { Strings } from '../csi/values.ts'
import type { Host } from '../host/host.ts'
import type { DriverFacts } from './driver-report.ts'
import type { Strikes } from './strikes.ts'

/** One function per call; deadline and signal are those of the check. */
type Bound<S extends typeof Identity | typeof Controller | typeof Node> = {
  readonly [K in keyof UnaryClient<S>]: UnaryClient<S>[K] extends (
    request: infer Request,
    options: infer _Options,
  ) => infer Answer
    ? (request: Request) => Answer
    : never
}

export type LabHost = Pick<Host, 'files' | 'mounts'>

/** How volumes of this driver are made. */
export interface VolumeRecipe {
  readonly sizeBytes: bigint
  readonly fsType: string
  readonly parameters: Strings
  readonly secrets: Strings
}

export interface Lab {
  readonly facts: DriverFacts
  readonly recipe: VolumeRecipe
  readonly identity: Bound<typeof Identity>
  readonly controller: Bound<typeof Controller>
  readonly node: Bound<typeof Node>
  /** Where the driver mounts; only for checks that need `mounts`. */
  readonly host: LabHost
  /** A directory for this check alone; made when first asked for. */
  directory(): Promise<string>
  readonly clock: Clock
  readonly signal: AbortSignal
  /** A name that nobody else uses; the same word gives the same name within the check. */
  named(word: string): string
  readonly strike: Strikes['strike']
  readonly hasStruck: Strikes['hasStruck']
  /** Runs after the check, the last first, whatever its verdict; with calls that have a deadline of their own. */
  undo(what: string, work: (lab: Lab) => Promise<unknown>): void
}

/** The driver's calls, each with a deadline. */
export function boundCalls(
  { transport, clock, timeoutMs }: { readonly transport: Transport; readonly clock: Clock; readonly timeoutMs: number },
  signal: AbortSignal,
): Pick<Lab, 'identity' | 'controller' | 'node'> {
  const call = createCall(clock, timeoutMs)
  const bind = <S extends typeof Identity | typeof Controller | typeof Node>(service: S): Bound<S> => {
    const client = unaryClient(service, transport) as Readonly<
      Record<string, (request: unknown, options: object) => unknown>
    >
    const bound = Object.entries(client).map(([name, invoke]) => [
      name,
      (request: unknown) => call(name, async (options) => invoke(request, options), signal),
    ])
    // The client has one entry per call of S, and each loses its second argument only.
    return Object.fromEntries(bound) as Bound<S>
  }
  return { identity: bind(csi.Identity), controller: bind(csi.Controller), node: bind(csi.Node) }
}
