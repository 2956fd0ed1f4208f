// Does the writer's role allow what becomes of the object? Roles name verbs and objects; some are limited in what they write.
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden } from '../../api/status-error.ts'
import { checkControllerWrite } from '../access/controller-writes.ts'
import { grantOf, nodeNameOf, roleOf } from '../access/grants.ts'
import { checkNamedSecrets } from '../access/named-secrets.ts'
import { mayTellOf } from '../access/node-access.ts'
import { checkNodeWrite, subjectOfEvent } from '../access/node-writes.ts'
import { sameList } from '../access/status-writes.ts'
import type { ServerContext } from '../objects/context.ts'
import type { User } from '../request/call.ts'
import type { CreateAttempt, UpdateAttempt } from './chain.ts'

export async function roleMayCreate({ context, info, object, user }: CreateAttempt): Promise<KubeObject> {
  checkCreates(user, info, object)
  checkNodeWrite(user, info, object, undefined, undefined)
  await checkNodeEvent(context, user, info, object)
  checkControllerWrite(user, info, object, undefined, undefined)
  await checkNamedSecrets(context, user, info, object, undefined)
  return object
}

export async function roleMayUpdate({
  context,
  info,
  object,
  current,
  subresource,
  user,
}: UpdateAttempt): Promise<void> {
  checkNodeWrite(user, info, object, current, subresource)
  checkControllerWrite(user, info, object, current, subresource)
  checkOwners(user, info, object, current)
  await checkNamedSecrets(context, user, info, object, current)
}

/** Here, not where the verb is granted: apply makes events as well. */
async function checkNodeEvent(context: ServerContext, user: User, info: KindInfo, object: KubeObject): Promise<void> {
  if (roleOf(user) !== 'node' || info.access.nodes?.may !== 'ownEvents') return
  const decision = await mayTellOf(context, nodeNameOf(user), subjectOfEvent(object))
  if (!decision.allowed) throw forbidden(info, object.metadata.name, decision.reason)
}

/** PUT and apply make an object that is not there: whoever may only change objects may not do so. */
function checkCreates(user: User, info: KindInfo, object: KubeObject): void {
  const role = roleOf(user)
  if (role !== 'controller' && role !== 'node') return
  const { group, plural: resource } = info
  const grant = grantOf(role, { group, resource, subresource: undefined, verb: 'create' })
  if (grant.to === 'nothing') throw forbidden(info, object.metadata.name, grant.reason)
}

/** An object whose owners are all gone is deleted: whoever may not delete it cannot choose its owners. */
function checkOwners(user: User, info: KindInfo, next: KubeObject, current: KubeObject): void {
  if (sameList(next.metadata.ownerReferences, current.metadata.ownerReferences)) return
  const { group, plural: resource } = info
  const grant = grantOf(roleOf(user), { group, resource, subresource: undefined, verb: 'delete' })
  if (grant.to !== 'nothing') return
  throw forbidden(info, next.metadata.name, 'only who may delete an object can change its ownerReferences')
}
