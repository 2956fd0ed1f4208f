// Which volumes does a backup name without holding their data? Those on other machines, of other drivers, and of no driver. Pure.
import type { PersistentVolume } from '../api/generated/types.ts'
import type { KubeObject } from '../api/meta.ts'
import { builtInDriver } from './config.ts'

/** One line for each; `saved` has the handles of the volumes whose data was copied. */
export function volumesWithoutData(objects: readonly KubeObject[], saved: ReadonlySet<string>): readonly string[] {
  return objects.filter(isVolume).flatMap((volume) => {
    const place = placeOfData(volume, saved)
    if (place === undefined) return []
    const { namespace, name } = volume.spec?.claimRef ?? {}
    const claim = name === undefined ? '' : ` (claim ${namespace}/${name})`
    return [`volume ${volume.metadata.name}${claim}: its data is ${place}`]
  })
}

function isVolume(object: KubeObject): object is PersistentVolume {
  return (object as { readonly kind?: string }).kind === 'PersistentVolume'
}

function placeOfData({ spec }: PersistentVolume, saved: ReadonlySet<string>): string | undefined {
  const { csi } = spec ?? {}
  if (csi === undefined) return `outside Hawser (${Object.keys(spec ?? {}).find(isSource) ?? 'no source'})`
  if (csi.driver !== builtInDriver) return `with driver ${csi.driver}`
  if (saved.has(csi.volumeHandle)) return undefined
  const nodes = nodesOf({ spec })
  return nodes.length === 0 ? 'not on this machine' : `on node ${nodes.join(', ')}`
}

/** The nodes that a volume can be used on; none: no such limit. */
export function nodesOf({ spec }: Pick<PersistentVolume, 'spec'>): readonly string[] {
  const terms = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []
  return terms.flatMap(({ matchExpressions = [] }) => matchExpressions.flatMap(({ values = [] }) => values))
}

const otherMembers: ReadonlySet<string> = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])
const isSource = (member: string) => !otherMembers.has(member)
