// May a pod of a manifest begin? Not beside an earlier pod of its name: an edited manifest is another pod (its uid follows from
// its contents), and both may write to the same place. The API keeps names apart for its own pods; here nobody else does.
import type { PodUid } from '../api/names.ts'
import type { PodWork } from './pod-work.ts'
import { runs } from './pod-work.ts'
import type { ContainerRecord } from './runtime/port.ts'

/** An earlier pod of that name that still runs. */
export function rivalOf(works: ReadonlyMap<PodUid, PodWork>, work: PodWork): PodWork | undefined {
  const own = work.source === 'api' ? undefined : ownerOf(work)
  if (own === undefined) return undefined
  let earlier = true
  for (const other of works.values()) {
    if (other === work) earlier = false
    else if ((earlier || other.gone) && (runs(other) || other.starting) && ownerOf(other) === own) return other
  }
  return undefined
}

/** Pods of an earlier life of the agent whose containers still run under this name, and that nobody has named yet. */
export function leftBehind(
  records: ReadonlyMap<PodUid, ReadonlyMap<string, ContainerRecord>>,
  works: ReadonlyMap<PodUid, PodWork>,
  work: PodWork,
): readonly PodUid[] {
  const own = work.source === 'api' ? undefined : ownerOf(work)
  return [...records.keys()].filter(
    (uid) => own !== undefined && !works.has(uid) && [...records.get(uid)!.values()].some(({ owner }) => owner === own),
  )
}

/** A pod of the API has its name to itself. */
function ownerOf({ pod, source, containers }: PodWork): string | undefined {
  if (pod) return source === 'api' ? undefined : `${pod.metadata.namespace}/${pod.metadata.name}`
  return [...containers.values()].find(({ record }) => record?.owner)?.record?.owner
}
