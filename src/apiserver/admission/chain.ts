// Which of the server's own policies does a write meet? One list per moment; each may change the object or refuse it.
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { Call, User } from '../request/call.ts'
import type { ServerContext } from '../objects/context.ts'
import { claimResize } from './claim-resize.ts'
import { defaultClass } from './default-class.ts'
import { inUseFinalizer } from './in-use-finalizer.ts'
import { namespaceExists, namespaceMayGo } from './namespaces.ts'
import { podDefaults } from './pod-defaults.ts'
import { roleMayCreate, roleMayUpdate } from './role-limits.ts'
import { serviceAccount } from './service-account.ts'

export interface CreateAttempt {
  readonly context: ServerContext
  readonly info: KindInfo
  readonly object: KubeObject
  /** Who writes. */
  readonly user: User
}

export interface UpdateAttempt extends CreateAttempt {
  readonly current: KubeObject
  readonly subresource: string | undefined
}

/** In order: refuse early, then fill in. */
const onCreate: readonly ((attempt: CreateAttempt) => Promise<KubeObject>)[] = [
  roleMayCreate,
  namespaceExists,
  defaultClass,
  inUseFinalizer,
  podDefaults,
  serviceAccount,
]

const onUpdate: readonly ((attempt: UpdateAttempt) => Promise<void>)[] = [roleMayUpdate, claimResize]

export async function admitCreate(
  context: ServerContext,
  info: KindInfo,
  object: KubeObject,
  { user }: Call,
): Promise<KubeObject> {
  let admitted = object
  for (const plugin of onCreate) admitted = await plugin({ context, info, object: admitted, user })
  return admitted
}

export async function admitUpdate(
  context: ServerContext,
  info: KindInfo,
  object: KubeObject,
  current: KubeObject,
  subresource: string | undefined,
  { user }: Call,
): Promise<KubeObject> {
  for (const plugin of onUpdate) await plugin({ context, info, object, current, subresource, user })
  return object
}

export function admitDelete(info: KindInfo, object: KubeObject): void {
  namespaceMayGo(info, object)
}
