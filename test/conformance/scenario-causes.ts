// What does `why` say about every object of one played scenario? Objects that nothing holds up are left out; names are told
// without the prefix of this play: `pvc/c1`, `pvc/ns2/c1`, `pv/v1`, `pv of c1`, `va v1 on n1`.
import type { ObjectMeta, PersistentVolume, VolumeAttachment } from '../../src/api/types.ts'
import type { HttpClient } from '../../src/client/http.ts'
import type { Cause } from '../../src/cli/why/causes.ts'
import { explain } from '../../src/cli/why/explain.ts'
import type { Explanation } from '../../src/cli/why/explain.ts'
import type { Facts, SubjectKind, WhySubject } from '../../src/cli/why/facts.ts'
import { gatherFacts } from '../../src/cli/why/gather.ts'

export type Causes = Readonly<Record<string, Cause>>

interface Named {
  readonly metadata: ObjectMeta
}

export async function causesOf(client: HttpClient, id: string): Promise<Causes> {
  const told: [string, Cause][] = []
  for (const [words, { blocked }] of await explanationsOf(client, id)) if (blocked) told.push([words, blocked.cause])
  return Object.fromEntries(told)
}

/** In the order of their words. */
export async function explanationsOf(
  client: HttpClient,
  id: string,
): Promise<readonly (readonly [words: string, Explanation])[]> {
  const now = Date.now()
  // The lists are the same whatever is asked about; only a pod asks for more, for itself.
  const common = ownFacts(await gatherFacts(client, { kind: 'Node', name: '' }, now), id)
  const told: [string, Explanation][] = []
  for (const { words, subject } of subjectsOf(common, id)) {
    const { missing } = subject.kind === 'Pod' ? await gatherFacts(client, subject, now) : common
    told.push([words, explain({ ...common, subject, missing })])
  }
  return told.toSorted(([one], [other]) => (one < other ? -1 : 1))
}

/** Scenarios are played side by side; whose nodes and volumes there are besides is no part of the answer. */
function ownFacts(facts: Facts, id: string): Facts {
  const isOurs = ({ metadata }: Named) => (metadata.namespace ?? metadata.name ?? '').startsWith(`${id}-`)
  const volumes = facts.volumes.filter(
    (volume) => isOurs(volume) || volume.spec?.claimRef?.namespace?.startsWith(`${id}-`),
  )
  const names = new Set(volumes.map(({ metadata }) => metadata.name))
  const isOn = ({ spec }: VolumeAttachment) =>
    spec.nodeName.startsWith(`${id}-`) || names.has(spec.source.persistentVolumeName ?? '')
  const { pods, claims, nodes, attachments } = facts
  const [ownPods, ownClaims, ownNodes] = [pods.filter(isOurs), claims.filter(isOurs), nodes.filter(isOurs)]
  return { ...facts, volumes, pods: ownPods, claims: ownClaims, nodes: ownNodes, attachments: attachments.filter(isOn) }
}

function subjectsOf(
  { pods, claims, volumes, attachments, nodes }: Facts,
  id: string,
): readonly { readonly words: string; readonly subject: WhySubject }[] {
  const named = (kind: SubjectKind, words: string, { metadata: { name = '', namespace } }: Named) => ({
    words,
    subject: { kind, name, ...(namespace === undefined ? {} : { namespace }) },
  })
  const inNamespace = ({ metadata: { name = '', namespace } }: Named) =>
    `${namespace === `${id}-ns2` ? 'ns2/' : ''}${plain(name, id)}`
  return [
    ...pods.map((pod) => named('Pod', `pod/${inNamespace(pod)}`, pod)),
    ...claims.map((claim) => named('PersistentVolumeClaim', `pvc/${inNamespace(claim)}`, claim)),
    ...volumes.map((volume) => named('PersistentVolume', volumeWords(volume, id), volume)),
    ...attachments.map((each) => named('VolumeAttachment', attachmentWords(each, volumes, id), each)),
    ...nodes.map((node) => named('Node', `node/${plain(node.metadata.name ?? '', id)}`, node)),
  ]
}

const plain = (name: string, id: string) => name.replace(`${id}-`, '')

/** A volume that was made to order is named by its claim: its own name differs from play to play. */
function volumeWords({ metadata, spec }: PersistentVolume, id: string): string {
  const name = metadata.name ?? ''
  return /^pvc-[0-9a-f-]{36}$/.test(name) ? `pv of ${spec?.claimRef?.name}` : `pv/${plain(name, id)}`
}

function attachmentWords({ spec }: VolumeAttachment, volumes: readonly PersistentVolume[], id: string): string {
  const name = spec.source.persistentVolumeName
  const volume = volumes.find(({ metadata }) => metadata.name === name)
  const of = volume ? volumeWords(volume, id).replace(/^pv[ /]/, '') : plain(name ?? 'inline', id)
  return `va ${of} on ${plain(spec.nodeName, id)}`
}
