// What may a controller's write change? The authorizer has said which object; this looks at what becomes of it. Whoever makes a
// volume of a path has the server empty or delete that path, as root: the jobs make volumes of CSI drivers and no others.
import type { PersistentVolume } from '../../api/generated/types.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden } from '../../api/status-error.ts'
import type { User } from '../request/call.ts'
import { grantOf, roleOf } from './grants.ts'
import { changedByStatus } from './status-writes.ts'

export function checkControllerWrite(
  user: User,
  info: KindInfo,
  next: KubeObject,
  current: KubeObject | undefined,
  subresource: string | undefined,
): void {
  if (roleOf(user) !== 'controller') return
  const refuse = (why: string) => forbidden(info, next.metadata.name, why)
  if (subresource === 'status' && current !== undefined && !mayUpdate(info)) {
    const changed = changedByStatus(next, current)
    if (changed !== undefined) throw refuse(`a controller cannot update ${changed} through status`)
  }
  if (info.name !== 'PersistentVolume') return
  const { spec } = next as PersistentVolume // its kind
  if (spec?.csi !== undefined) return
  if (current === undefined) throw refuse('a controller makes volumes of CSI drivers only')
  const { spec: before } = current as PersistentVolume // its kind
  if (spec?.persistentVolumeReclaimPolicy !== before.persistentVolumeReclaimPolicy)
    throw refuse('a controller changes the reclaim policy of volumes of CSI drivers only')
}

function mayUpdate({ group, plural: resource }: KindInfo): boolean {
  return grantOf('controller', { group, resource, subresource: undefined, verb: 'update' }).to !== 'nothing'
}
