// Which class does a claim get that names none? The newest class marked as default, ties by name (API-8).
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { chooseDefaultClass, hasNoClassDecision } from '../../api/storage-class.ts'
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts'
import type { ServerContext } from '../objects/context.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import type { CreateAttempt } from './chain.ts'

export async function defaultClass({ context, info, object }: CreateAttempt): Promise<KubeObject> {
  if (info.name !== 'PersistentVolumeClaim') return object
  const claim = object as PersistentVolumeClaim
  if (!hasNoClassDecision(claim)) return object
  const name = await findDefaultClass(context)
  if (name === undefined) return object
  const chosen: PersistentVolumeClaim = { ...claim, spec: { ...claim.spec, storageClassName: name } }
  return chosen
}

async function findDefaultClass(context: ServerContext): Promise<string | undefined> {
  const { entries } = await context.store.list(prefixOf(kinds.StorageClass, undefined), {})
  // Stored under the class's own key, so it is one.
  const classes = entries.map((entry) => context.objects.decode(kinds.StorageClass, entry) as KubeObject & StorageClass)
  return chooseDefaultClass(classes)?.metadata.name
}
