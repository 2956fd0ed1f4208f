// What does `why` say about every object of one play of a recorded scenario? Objects that nothing holds up are left out; names
// are told without the prefix of the play: `pvc/c1`, `pvc/ns2/c1`, `pv/v1`, `pv of c1`, `va v1 on n1`.
import assert from 'node:assert/strict'
import type { ObjectMeta, PersistentVolume, VolumeAttachment } from '../../src/api/generated/types.ts'
import type { HttpClient } from '../../src/client/http.ts'
import type { Cause } from '../../src/why/causes.ts'
import { explain } from '../../src/why/explain.ts'
import type { Facts, SubjectKind, WhySubject } from '../../src/why/facts.ts'
import { gatherFacts } from '../../src/why/gather.ts'

/** What belongs to one play: everything in its namespaces, and whatever else has a name with its prefix. */
export interface Play {
  readonly namespaces: readonly [first: string, ...others: string[]]
  /** `g1x2y3z-` */
  readonly prefix: string
}

export type Causes = Readonly<Record<string, Cause>>

interface Named {
  readonly metadata: ObjectMeta
}

/** `nodes` says whether the nodes belong to the play, or are the stage of many. */
export async function causesOf(client: HttpClient, play: Play, nodes: 'own' | 'shared'): Promise<Causes> {
  const now = Date.now()
  // The lists are the same whatever is asked about; only a pod asks for more, for itself.
  const common = ownFacts(await gatherFacts(client, { kind: 'Node', name: '' }, now), play, nodes)
  const told: [string, Cause][] = []
  for (const { words, subject } of subjectsOf(common, play, nodes)) {
    const { missing } = subject.kind === 'Pod' ? await gatherFacts(client, subject, now) : common
    const { blocked } = explain({ ...common, subject, missing })
    if (blocked) told.push([words, blocked.cause])
  }
  return Object.fromEntries(told.toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** Plays run side by side; whose nodes and volumes there are besides is no part of the answer. */
function ownFacts(facts: Facts, { namespaces, prefix }: Play, stage: 'own' | 'shared'): Facts {
  const isOurs = ({ metadata: { namespace, name = '' } }: Named) =>
    namespace === undefined ? name.startsWith(prefix) : namespaces.includes(namespace)
  const volumes = facts.volumes.filter((volume) => {
    const { claimRef } = volume.spec
    return claimRef?.namespace === undefined ? isOurs(volume) : namespaces.includes(claimRef.namespace)
  })
  const names = new Set(volumes.map(({ metadata }) => metadata.name))
  const isOn = ({ spec }: VolumeAttachment) =>
    spec.nodeName.startsWith(prefix) || names.has(spec.source.persistentVolumeName ?? '')
  return {
    ...facts,
    volumes,
    pods: facts.pods.filter(isOurs),
    claims: facts.claims.filter(isOurs),
    nodes: stage === 'own' ? facts.nodes.filter(isOurs) : facts.nodes,
    attachments: facts.attachments.filter(isOn),
  }
}

function subjectsOf(
  { pods, claims, volumes, attachments, nodes }: Facts,
  { namespaces: [usual], prefix }: Play,
  stage: 'own' | 'shared',
): readonly { readonly words: string; readonly subject: WhySubject }[] {
  const named = (kind: SubjectKind, words: string, { metadata: { name = '', namespace } }: Named) => ({
    words,
    subject: { kind, name, ...(namespace === undefined ? {} : { namespace }) },
  })
  const inNamespace = ({ metadata: { name = '', namespace } }: Named) =>
    `${namespace === usual ? '' : `${plain(namespace ?? '', prefix)}/`}${plain(name, prefix)}`
  return [
    ...pods.map((pod) => named('Pod', `pod/${inNamespace(pod)}`, pod)),
    ...claims.map((claim) => named('PersistentVolumeClaim', `pvc/${inNamespace(claim)}`, claim)),
    ...volumes.map((volume) => named('PersistentVolume', volumeWords(volume, prefix), volume)),
    ...attachments.map((each) => named('VolumeAttachment', attachmentWords(each, volumes, prefix), each)),
    ...(stage === 'own' ? nodes : []).map((node) =>
      named('Node', `node/${plain(node.metadata.name ?? '', prefix)}`, node),
    ),
  ]
}

const plain = (name: string, prefix: string) => (name.startsWith(prefix) ? name.slice(prefix.length) : name)

/** A volume that was made to order is named by its claim: its own name differs from play to play. */
function volumeWords({ metadata, spec }: PersistentVolume, prefix: string): string {
  const name = metadata.name ?? ''
  return /^pvc-[0-9a-f-]{36}$/.test(name) ? `pv of ${spec?.claimRef?.name}` : `pv/${plain(name, prefix)}`
}

function attachmentWords({ spec }: VolumeAttachment, volumes: readonly PersistentVolume[], prefix: string): string {
  const name = spec.source.persistentVolumeName
  const volume = volumes.find(({ metadata }) => metadata.name === name)
  const of = volume ? volumeWords(volume, prefix).replace(/^pv[ /]/, '') : plain(name ?? 'inline', prefix)
  return `va ${of} on ${plain(spec.nodeName, prefix)}`
}

/** Object → cause; `one or other` where it depends on how long the object has waited. */
export type WantedCauses = Readonly<Record<string, string>>

/** The history is written behind the work: what is asked too early is asked again. */
export async function untilCauses(
  look: () => Promise<Causes>,
  wanted: WantedCauses,
  timeoutMs: number,
): Promise<Causes> {
  const end = Date.now() + timeoutMs
  let found = await look()
  while (!agree(found, wanted) && Date.now() < end) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    found = await look()
  }
  return found
}

export function assertCauses(found: Causes, wanted: WantedCauses, message: string): void {
  if (!agree(found, wanted)) assert.deepEqual(found, wanted, message)
}

function agree(found: Causes, wanted: WantedCauses): boolean {
  const names = Object.keys(wanted)
  return (
    names.length === Object.keys(found).length &&
    names.every((name) => wanted[name]!.split(' or ').includes(found[name] ?? ''))
  )
}
