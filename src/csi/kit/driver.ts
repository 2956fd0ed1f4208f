// How is a whole driver put together? Records, storage and node backends go in, CSI handlers come out.
// Either half may be left out: a controller-only or node-only driver.
import type { Clock } from '../../clock/clock.ts'
import type { Host } from '../../host/host.ts'
import type { DriverHandlers } from '../service.ts'
import type { NodeBackend, Records, StorageBackend } from './backend.ts'
import { createExclusive, createTurns } from './checks.ts'
import type { Exclusive } from './checks.ts'
import { controllerHandlers } from './controller.ts'
import { identityHandlers } from './identity.ts'
import { nodeHandlers } from './node.ts'
import { snapshotHandlers } from './snapshots.ts'

export interface DriverSettings {
  readonly name: string
  readonly version: string
  readonly nodeId: string
  /** Such as `topology.local.hawser.dev/node`; set: volumes live on one node and say so. */
  readonly topologyKey?: string
  /** Where inline volumes are staged. */
  readonly workDirectory: string
  /** Offer ControllerPublishVolume. */
  readonly attach: boolean
  /** May several nodes use one volume? */
  readonly multiNode: boolean
  readonly maxVolumesPerNode: bigint
  readonly minimumVolumeBytes: bigint
  readonly maximumVolumeBytes: bigint
  /** Storage offered altogether; absent: what the backend says is free. */
  readonly capacityBytes?: bigint
}

export interface DriverDeps {
  readonly settings: DriverSettings
  readonly clock: Clock
  readonly records: Records
  readonly storage: StorageBackend
  readonly node: NodeBackend
  readonly host: Pick<Host, 'files' | 'mounts' | 'filesystems' | 'devices'>
}

export interface KitDeps extends DriverDeps {
  /** One operation per volume, across all services of this process. */
  readonly exclusive: Exclusive
  /** One promise of space at a time: counting and writing the record go together. */
  readonly promising: ReturnType<typeof createTurns>
}

export function createDriverHandlers(deps: DriverDeps): DriverHandlers {
  const kit: KitDeps = { ...deps, exclusive: createExclusive(), promising: createTurns() }
  return {
    identity: identityHandlers(kit),
    controller: { ...controllerHandlers(kit), ...snapshotHandlers(kit) },
    node: nodeHandlers(kit),
  }
}
