// Which class does a claim get that names none? The newest class marked as default, ties by name (API-8).
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { annotation } from '../../api/meta.ts'
import type { PersistentVolumeClaim } from '../../api/types.ts'
import type { ServerContext } from '../context.ts'
import { decodeObject, prefixOf } from '../objects.ts'
import type { CreateAttempt } from './chain.ts'

const betaClass = 'volume.beta.kubernetes.io/storage-class'
const defaultMarks = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

export async function defaultClass({ context, info, object }: CreateAttempt): Promise<KubeObject> {
  if (info.name !== 'PersistentVolumeClaim') return object
  const claim = object as PersistentVolumeClaim
  if (claim.spec?.storageClassName !== undefined || annotation(claim, betaClass) !== undefined) return object
  const name = await findDefaultClass(context)
  if (name === undefined) return object
  const chosen: PersistentVolumeClaim = { ...claim, spec: { ...claim.spec, storageClassName: name } }
  return chosen
}

async function findDefaultClass(context: ServerContext): Promise<string | undefined> {
  const { entries } = await context.store.list(prefixOf(kinds.StorageClass, undefined), {})
  const marked = entries
    .map((entry) => decodeObject(kinds.StorageClass, entry).metadata)
    .filter(({ annotations }) => defaultMarks.some((mark) => annotations?.[mark] === 'true'))
  marked.sort((left, right) => {
    const newest = (right.creationTimestamp ?? '').localeCompare(left.creationTimestamp ?? '')
    return newest === 0 ? (left.name < right.name ? -1 : 1) : newest
  })
  return marked[0]?.name
}
