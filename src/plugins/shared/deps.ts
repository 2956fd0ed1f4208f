// What may a plugin ask for, on a node and in the control plane? Each definition names the part it uses; `index.ts` gives all of it.

import type { Client } from '../../client/client.ts'
import type { Informers } from '../../client/informer.ts'
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

export interface ClusterPluginDeps {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  /** Makes hostPath volumes under /tmp; only where the administrator switched it on (HOST-5). */
  readonly hostPathProvisioning?: { readonly host: Pick<Host, 'files'>; readonly random: Random }
}
