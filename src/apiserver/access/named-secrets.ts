// Which secrets do the CSI jobs need? Those that a StorageClass or VolumeSnapshotClass names, which only administrators write,
// and those that a volume or snapshot content names. A controller that writes one of the latter cannot add a secret that no
// class names, or it could read every secret by naming it first.
import type { StorageClass, VolumeSnapshotClass } from '../../api/generated/types.ts'
import { kinds } from '../../api/kinds.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { forbidden } from '../../api/status-error.ts'
import type { ServerContext } from '../objects/context.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import type { User } from '../request/call.ts'
import { roleOf } from './grants.ts'
import type { SecretRef } from './secret-refs.ts'
import { canMean, secretPairsIn, secretRefsIn } from './secret-refs.ts'

interface Named {
  readonly namespace: string | undefined
  readonly name: string | undefined
}

export async function isNamedSecret(context: ServerContext, { namespace, name }: Named): Promise<boolean> {
  if (namespace === undefined || name === undefined) return false
  const secret = { namespace, name }
  if (await isNamedByClass(context, secret)) return true
  const text = JSON.stringify(name)
  for (const info of [kinds.PersistentVolume, kinds.VolumeSnapshotContent]) {
    for (const object of await objectsOf(context, info, (value) => value.includes(text))) {
      if (refsOf(object).some((ref) => ref.name === name && ref.namespace === namespace)) return true
    }
  }
  return false
}

/** Refuses what a controller adds to a volume or content beyond what classes name. */
export async function checkNamedSecrets(
  context: ServerContext,
  user: User,
  info: KindInfo,
  next: KubeObject,
  current: KubeObject | undefined,
): Promise<void> {
  if (info.name !== 'PersistentVolume' && info.name !== 'VolumeSnapshotContent') return
  if (roleOf(user) !== 'controller') return
  const known = current === undefined ? [] : refsOf(current)
  for (const ref of refsOf(next)) {
    if (known.some(({ name, namespace }) => name === ref.name && namespace === ref.namespace)) continue
    if (await isNamedByClass(context, ref)) continue
    throw forbidden(info, next.metadata.name, `no class names secret ${ref.namespace}/${ref.name}`)
  }
}

function refsOf(object: KubeObject): readonly SecretRef[] {
  const { spec } = object as { spec?: unknown } // any kind
  return [...secretRefsIn(spec), ...secretPairsIn(object.metadata.annotations)]
}

async function isNamedByClass(context: ServerContext, secret: SecretRef): Promise<boolean> {
  for (const info of [kinds.StorageClass, kinds.VolumeSnapshotClass]) {
    for (const object of await objectsOf(context, info, (value) => /secret-?name/i.test(value))) {
      const { parameters } = object as StorageClass | VolumeSnapshotClass // its kind
      if (secretPairsIn(parameters).some((template) => canMean(template, secret))) return true
    }
  }
  return false
}

/** The texts are searched before they are parsed. */
async function objectsOf(
  context: ServerContext,
  info: KindInfo,
  mayMatter: (text: string) => boolean,
): Promise<readonly KubeObject[]> {
  const { entries } = await context.store.list(prefixOf(info, undefined), {})
  return entries.filter(({ value }) => mayMatter(value)).map((entry) => context.objects.decode(info, entry))
}
