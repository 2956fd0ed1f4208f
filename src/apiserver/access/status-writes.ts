// Which metadata does a write through /status change that is not the writer's business? Pure.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '../../api/meta.ts'

const kept = ['labels', 'finalizers', 'ownerReferences'] as const

export function changedByStatus(next: KubeObject, current: KubeObject): (typeof kept)[number] | undefined {
  return kept.find((member) => !sameList(next.metadata[member], current.metadata[member]))
}

/** An empty list says as much as none. */
export function sameList(one: object | undefined, other: object | undefined): boolean {
  return isDeepStrictEqual(withoutNothing(one), withoutNothing(other))
}

function withoutNothing(list: object | undefined): object | undefined {
  return list !== undefined && Object.keys(list).length === 0 ? undefined : list
}
