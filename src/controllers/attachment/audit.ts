// Is what we believe to be attached really there? A slow comparison with the storage's own answer, one per node at a time
// (rules VVA-1 … VVA-4, DES-15). Attachment objects that change under us bring the look forward.
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import { createKeyLoop } from '../../loop/key-loop.ts'
import { createPending } from '../../loop/pending.ts'
import type { Pending } from '../../loop/pending.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { createRunner } from '../../volume/operation.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import type { Registry } from '../../volume/registry.ts'
import type { ActualWorld, OnNode } from './actual.ts'
import type { VerifyRequest } from './operations.ts'
import { verifyOperation } from './operations.ts'

export interface Audit extends AsyncDisposable {
  /** Something is attached to this node: look within a period. */
  expect(node: NodeName): void
  /** Something may have changed there: look now. */
  now(node: NodeName): void
}

export interface AuditDeps {
  readonly actual: ActualWorld
  /** The operations of volumes: what is being worked on is not judged. */
  readonly pending: Pending
  readonly registry: Registry<ClusterPlugin>
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** 0 switches the regular look off. */
  readonly periodMs: number
  readonly signal: AbortSignal
}

export function createAudit(deps: AuditDeps & { attachedTo(node: NodeName): Iterable<UniqueVolumeName> }): Audit {
  const { actual, registry, clock, log, metrics, periodMs, signal } = deps
  const running = createPending(clock)
  // That all is as it was is no news: the regular look speaks only when asked for details.
  const runner = createRunner({ clock, pending: running, log: { ...log, info: log.debug }, metrics })
  const onNode = (volume: UniqueVolumeName, node: NodeName) => actual.items.get(volume)?.nodes.get(node)

  const verify = async (node: NodeName): Promise<boolean> => {
    const asked = new Map<UniqueVolumeName, OnNode>()
    const entries: VerifyRequest['entries'][number][] = []
    for (const volume of deps.attachedTo(node)) {
      const identity = actual.items.get(volume)?.identity
      const entry = onNode(volume, node)
      if (entry?.presence !== 'attached' || identity?.kind !== 'known') continue // no spec, nobody to ask (VVA-1)
      asked.set(volume, entry)
      entries.push({ volume, spec: identity.spec })
    }
    if (entries.length === 0) return false
    const missing = (volume: UniqueVolumeName) => {
      // The answer is old by now: it counts only if nothing happened to the volume since we asked.
      if (onNode(volume, node) !== asked.get(volume) || deps.pending.isPending([volume])) return
      log.warn('volume is no longer attached', { volume, node })
      actual.apply({ kind: 'foundNotAttached', volume, node })
    }
    const unanswered = (plugin: string, _node: NodeName, error: unknown) =>
      log.warn('attachments not verified', { plugin, node, error })
    const answer = runner.start(
      verifyOperation,
      { node, entries },
      { registry, missing, unanswered },
      { apply: () => {}, signal },
    )
    if (answer.kind === 'started') await answer.finished
    return true
  }
  const loop = createKeyLoop<NodeName>({
    name: 'attachment-audit',
    clock,
    workers: 4,
    async look(node) {
      const something = await verify(node)
      return something && periodMs > 0 ? { again: clock.now() + periodMs } : undefined
    },
    onError: (node, error) => log.error('audit failed', { node, error }),
  })
  return {
    expect: (node) => {
      if (periodMs > 0) loop.wakeAt(node, clock.now() + periodMs)
    },
    now: (node) => loop.wake(node),
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  }
}
