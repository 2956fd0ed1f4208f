// Does someone else do this job? Upstream's sidecars hold a lease each while they lead; as long as it is fresh and not
// ours, the job is theirs.
import type { Lease } from '../../api/generated/types.ts'
import type { Informers } from '../../client/informer.ts'
import { createLeaseSilence } from '../../client/lease-silence.ts'
import type { Clock } from '../../clock/clock.ts'

export type JobName = 'provisioner' | 'attacher' | 'resizer' | 'snapshotter' | 'snapshot-controller'

/** The names under which upstream's sidecars elect their leader, in whatever namespace they run. */
export function leaseNames(job: JobName, driver: string): readonly string[] {
  const safe = driver.replaceAll(/[^a-zA-Z0-9-]/g, '-')
  switch (job) {
    case 'provisioner':
      return [safe]
    case 'attacher':
      return [`external-attacher-leader-${safe}`]
    case 'resizer':
      return [`external-resizer-${safe}`]
    case 'snapshotter':
      return [`external-snapshotter-leader-${safe}`]
    case 'snapshot-controller':
      return ['snapshot-controller-leader'] // one for all drivers
    default:
      return job satisfies never
  }
}

export function createLeaseWatch(deps: {
  readonly informers: Informers
  readonly clock: Clock
  readonly identity: string
}) {
  const leases = deps.informers.of('Lease')
  const silence = createLeaseSilence(leases, deps.clock)
  const byName = leases.index(({ metadata }) => [metadata.name])
  return {
    heldByAnother(job: JobName, driver: string): boolean {
      for (const name of leaseNames(job, driver)) {
        for (const lease of byName.get(name)) if (isHeld(lease, deps.identity, silence.silentMs(lease))) return true
      }
      return false
    },
  }
}

function isHeld({ spec }: Lease, identity: string, silentMs: number): boolean {
  if (!spec?.holderIdentity || spec.holderIdentity === identity) return false
  return silentMs < (spec.leaseDurationSeconds ?? 15) * 1_000
}
