// Why does a class of volume attributes not go? It is kept while a claim or a volume names it.
import type { PersistentVolume, PersistentVolumeClaim, VolumeAttributesClass } from '../api/generated/types.ts'
import type { Facts } from './facts.ts'
import { parse, waitsOf } from './facts.ts'
import type { Link } from './link.ts'
import { blocked, done, sinceFacts } from './link.ts'
import { causeOfController } from './reasons.ts'

export function classLinks(facts: Facts, attributes: VolumeAttributesClass): readonly Link[] {
  const { name = '', creationTimestamp, deletionTimestamp, finalizers = [] } = attributes.metadata
  const made = done(`class ${name} is created`, 'you', undefined, parse(creationTimestamp))
  if (deletionTimestamp === undefined) return [made]
  const since = sinceFacts(parse(deletionTimestamp))
  const target = { kind: 'VolumeAttributesClass', name }
  const [wait] = waitsOf(facts, target, (actor) => actor === 'protection')
  const users = usersOf(facts, name)
  const cause = users.length > 0 ? 'classProtected' : causeOfController(wait?.reason)
  const title = 'it is deleted'
  if (cause !== undefined)
    return [made, blocked(title, 'protection', cause, { class: name, detail: users.slice(0, 5).join(', ') }, since)]
  const names = { class: name, detail: finalizers.join(', ') }
  return [made, blocked(title, 'the owner of the finalizer', 'finalizersHold', names, since)]
}

function usersOf({ claims, volumes }: Facts, name: string): readonly string[] {
  return [
    ...claims.filter((claim) => namesOfClaim(claim).includes(name)).map(({ metadata }) => `pvc/${metadata.name}`),
    ...volumes.filter((volume) => nameOfVolume(volume) === name).map(({ metadata }) => `pv/${metadata.name}`),
  ]
}

/** What it wants, what it has, and what it is being changed to. */
const namesOfClaim = ({ spec, status }: PersistentVolumeClaim): readonly (string | undefined)[] => [
  spec?.volumeAttributesClassName,
  status?.currentVolumeAttributesClassName,
  status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
]

const nameOfVolume = ({ spec }: PersistentVolume) => spec?.volumeAttributesClassName
