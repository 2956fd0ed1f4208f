// What may a node's write change? The authorizer has said which object; this looks at what becomes of it. Through /status a
// node changes no labels, finalizers or owners, of a claim only what growing it changes, and its records stay its own.
import { isDeepStrictEqual } from 'node:util'
import type { KindInfo } from '../../api/kinds.ts'
import { omit } from '../../api/members.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden } from '../../api/status-error.ts'
import type { User } from '../request/call.ts'
import { nodeNameOf, roleOf } from './grants.ts'

const keptByStatus = ['labels', 'finalizers', 'ownerReferences'] as const
/** What expansion on the node writes. */
const claimMembers = ['capacity', 'conditions', 'allocatedResources', 'allocatedResourceStatuses']

export function checkNodeWrite(
  user: User,
  info: KindInfo,
  next: KubeObject,
  current: KubeObject | undefined,
  subresource: string | undefined,
): void {
  if (roleOf(user) !== 'node') return
  const node = nodeNameOf(user)
  const refuse = (what: string) => forbidden(info, next.metadata.name, `node ${JSON.stringify(node)} ${what}`)
  if (subresource === 'status' && current !== undefined) {
    const changed = keptByStatus.find((member) => !sameList(next.metadata[member], current.metadata[member]))
    if (changed !== undefined) throw refuse(`cannot update ${changed} through ${info.kind.toLowerCase()} status`)
  }
  if (
    info.name === 'PersistentVolumeClaim' &&
    current &&
    !isDeepStrictEqual(restOfStatus(next), restOfStatus(current))
  ) {
    throw refuse(
      `is not allowed to update fields other than ${claimMembers.map((name) => `status.${name}`).join(', ')}`,
    )
  }
  if (info.access.nodes?.may === 'ownRecords') {
    const { spec } = next as { spec?: { node?: unknown } } // an Operation
    if (spec?.node !== node) throw refuse(`records ${info.plural} of its own`)
  }
}

/** An empty list says as much as none. */
function sameList(one: object | undefined, other: object | undefined): boolean {
  return isDeepStrictEqual(withoutNothing(one), withoutNothing(other))
}

function withoutNothing(list: object | undefined): object | undefined {
  return list !== undefined && Object.keys(list).length === 0 ? undefined : list
}

function restOfStatus(object: KubeObject): object {
  const { status } = object as { status?: Record<string, unknown> } // any kind
  return omit(status ?? {}, claimMembers)
}
