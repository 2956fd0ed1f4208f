// May a pod of a manifest begin? Not beside an earlier pod of its name: an edited manifest is another pod (its uid follows from
// its contents), and both may write to the same place. The API keeps names apart for its own pods; here nobody else does.
import type { PodUid } from '../../api/names.ts'
import { isActive } from './pod-lifetime.ts'
import type { PodRecord } from './pod-record.ts'

/** An earlier pod of that name that still runs. */
export function conflictingPod(records: ReadonlyMap<PodUid, PodRecord>, record: PodRecord): PodUid | undefined {
  const own = record.source === 'api' ? undefined : ownerOf(record)
  if (own === undefined) return undefined
  let earlier = true
  for (const other of records.values()) {
    if (other.uid === record.uid) earlier = false
    else if ((earlier || other.gone) && isActive(other) && ownerOf(other) === own) return other.uid
  }
  return undefined
}

/** Pods of an earlier life of the agent that have containers under this name, and that nobody has named yet. */
export function unnamedOfSameName(records: ReadonlyMap<PodUid, PodRecord>, record: PodRecord): readonly PodUid[] {
  const own = record.source === 'api' ? undefined : ownerOf(record)
  if (own === undefined) return []
  return [...records.values()]
    .filter(({ source, containers }) => {
      const owners = [...containers.values()].map((view) => view.record?.owner)
      return source === undefined && owners.includes(own)
    })
    .map(({ uid }) => uid)
}

/** A pod of the API has its name to itself. */
function ownerOf({ pod, source, containers }: PodRecord): string | undefined {
  if (pod) return source === 'api' ? undefined : `${pod.metadata.namespace}/${pod.metadata.name}`
  return [...containers.values()].find(({ record }) => record?.owner)?.record?.owner
}
