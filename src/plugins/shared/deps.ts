// What may a plugin on a node ask for? Each definition names the part it uses; `index.ts` hands the whole to all.

import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import type { Host } from '../../host/host.ts'
import type { Log } from '../../telemetry/log.ts'

export interface NodePluginDeps {
  readonly host: Host
  readonly client: Client
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** The node's root directory (`/var/lib/kubelet` in Kubernetes). */
  readonly root: string
  /** What pods may use of this node, by resource name: `{ cpu: '2', memory: '8Gi' }`. */
  allocatable(): Readonly<Record<string, string>>
  /** Mount memory volumes so that they never go to swap (Linux 6.4; the reference release does not). */
  readonly noSwap?: boolean
  /** Where unpacked images lie; volumes of type image need it. */
  readonly imageRoots?: (reference: string) => string | undefined
}
