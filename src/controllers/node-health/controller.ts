// Who notices that a node died? Its lease is over, so its Ready condition becomes Unknown; from then on the six-minute
// timer of forced detach may run (FD-2). The agent says Ready again when it comes back.
import type { Client } from '../../client/client.ts'
import type { Informers } from '../../client/informer.ts'
import type { Clock } from '../../clock/clock.ts'
import { timestamp } from '../../clock/clock.ts'
import { createLeaseSilence } from '../../client/lease-silence.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import type { Log } from '../../telemetry/log.ts'
import { planHealth } from './plan.ts'

export interface NodeHealthDeps {
  readonly client: Client
  readonly informers: Informers
  readonly clock: Clock
  readonly log: Log
}

const leaseNamespace = 'kube-node-lease'

export function createNodeHealthController({ client, informers, clock, log }: NodeHealthDeps): AsyncDisposable {
  const stack = new AsyncDisposableStack()
  const nodes = informers.of('Node')
  const leases = informers.of('Lease', { namespace: leaseNamespace })
  const silence = stack.use(createLeaseSilence(leases, clock))
  // Until we have heard a lease renewed we do not judge by it: we may have been away ourselves.
  const begun = clock.steady()
  const loop = stack.use(
    createKeyLoop<string>({
      name: 'node health',
      clock,
      workers: 4,
      async look(name, signal) {
        const node = nodes.get(name)
        if (node === undefined) return
        const lease = leases.get(`${leaseNamespace}/${name}`)
        const silentMs = lease === undefined ? Number.NaN : silence.silentMs(lease)
        const plan = planHealth(node, lease, silentMs, timestamp(clock.now()))
        switch (plan.kind) {
          case 'nothing':
            return
          case 'lookAgain':
            return { again: clock.now() + plan.afterMs + 1 }
          case 'markUnknown': {
            const remainingMs = begun + 40_000 - clock.steady()
            if (remainingMs > 0) return { again: clock.now() + remainingMs }
            log.warn('node does not answer', { node: name })
            const body = { status: { conditions: [plan.condition] } }
            await client.patch('Node', { name }, { type: 'strategic', body }, { subresource: 'status' }, signal)
            return
          }
          default:
            return plan satisfies never
        }
      },
      onError: (name, error, retryAt) => log.warn('node health not written', { node: name, error, retryAt }),
    }),
  )
  // A renewed lease only moves the time of the next look; the key is not woken for each.
  stack.use(leases.subscribe(({ kind, key }) => kind === 'added' && loop.wake(key.slice(leaseNamespace.length + 1))))
  stack.use(nodes.subscribe(({ kind, key }) => kind !== 'removed' && loop.wake(key)))
  return stack
}
