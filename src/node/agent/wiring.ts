// How do the parts of an agent hear of each other? Pods tell which volumes they want and no longer want; volumes, plugins and the
// control plane tell what may end a wait. Each subscription goes from a world or a part to one that was made after it.
import type { PodUid } from '../../api/names.ts'
import type { Waiting } from '../volumes/plan.ts'
import type { AgentDeps, AgentParts } from './parts.ts'

/** The subscriptions; disposing them ends it. */
export function wireAgent({ registry }: AgentDeps, { worlds, shared, volumes }: AgentParts): readonly Disposable[] {
  const { desired, actual, pods } = worlds
  const { populator, reconciler, orphanCleaner } = volumes
  const wakeWaiting = (waitedFor: Waiting['reason']) => {
    for (const [volume, waits] of reconciler.waiting)
      if (waits.some(({ reason }) => reason === waitedFor)) reconciler.wake(volume)
  }
  /** What kept volumes of this pod from being undone may be over. */
  const release = (pod: PodUid, waitedFor: Waiting['reason']) => {
    orphanCleaner.wake(pod)
    wakeWaiting(waitedFor)
  }
  /** A plugin's answers may have changed: volumes that wait to be attached are looked at again (KP-9). */
  const askAgain = () => {
    for (const { attachable, volume, pods: users } of desired.items.values()) {
      if (attachable && !actual.items.has(volume)) for (const pod of users.keys()) populator.reprocess(pod)
    }
  }
  return [
    ...registry.all().flatMap(({ plugin }) => plugin.watch?.(askAgain) ?? []),
    ...registry.all().flatMap(
      ({ name, plugin }) =>
        plugin.onReturn?.((serves) => {
          reconciler.retry((each, spec) => each === name && serves(spec))
          orphanCleaner.retry(name)
        }) ?? [],
    ),
    // A driver that was missing may be there now.
    registry.subscribe(() => [...populator.unresolved].forEach(populator.reprocess)),
    // What the control plane says of one volume wakes only volumes that wait for it.
    shared.nodes.subscribe(() => wakeWaiting('notAttached')),
    populator.onChange((pod) => release(pod, 'claimsUnresolved')),
    pods.subscribe((uid, event) => {
      if (event.kind === 'volumesWanted') populator.put(event.pod)
      if (event.kind !== 'volumesReleased') return
      populator.drop(uid)
      release(uid, 'containersRunning')
    }),
  ]
}
