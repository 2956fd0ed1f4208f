// What do the volume commands share? Sizes, access modes, and how a claim that is being made is watched.
import { getIfExists } from '../../../client/get-if-exists.ts'
import type { AccessMode } from '../../../api/access-modes.ts'
import { shortModes } from '../../../api/access-modes.ts'
import { annotations } from '../../../api/annotations.ts'
import type { PersistentVolumeClaim, StorageClass } from '../../../api/generated/types.ts'
import { bytesOfQuantity, quantityAdvice, tryParseQuantity } from '../../../api/quantity.ts'
import { chooseDefaultClass, classOf } from '../../../api/storage-class.ts'
import type { Client } from '../../../client/client.ts'
import { namesOf } from '../../completions.ts'
import type { Connection } from '../../connect.ts'
import type { Context } from '../../context.ts'
import { Missing } from '../../errors.ts'
import { inNamespace } from '../../hints.ts'
import type { Look } from '../../wait.ts'
import { waitUntil } from '../../wait.ts'

/** RWX and ReadWriteMany, however written. */
const modes: ReadonlyMap<string, AccessMode> = new Map(
  Object.entries(shortModes).flatMap(([mode, short]) =>
    [mode, short].map((text) => [text.toLowerCase(), mode as AccessMode] as const),
  ),
)

export function modeFrom(text: string): AccessMode {
  const mode = modes.get(text.toLowerCase())
  if (!mode) throw new SyntaxError(`"${text}" is not one of ${Object.values(shortModes).join(', ')}`)
  return mode
}

/** A Kubernetes quantity. Less than 1Mi is a forgotten or mistaken unit: 10 is ten bytes, and 500m half a byte. */
export function sizeFrom(text: string): string {
  if (!tryParseQuantity(text)) throw new SyntaxError(quantityAdvice(text).replace('a quantity', 'a size'))
  const bytes = bytesOfQuantity(text)
  if (bytes <= 0n) throw new SyntaxError(`"${text}" is not a size; examples: 500Mi, 1Gi, 2T`)
  if (bytes < 1_048_576n) {
    const [number] = /^[\d.]+/.exec(text) ?? ['1']
    const is = bytes === 1n ? '1 byte' : `${bytes} bytes`
    throw new SyntaxError(`"${text}" is ${is}; did you mean ${number}Mi or ${number}Gi?`)
  }
  return text
}

export const nodeFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'NODE',
  proposeCompletions: namesOf('Node'),
  brief: 'With a WaitForFirstConsumer class: provision now, for this node',
} as const

export interface NewClaim {
  readonly name: string
  readonly size: string
  readonly class?: string
  readonly mode: AccessMode
  readonly block: boolean
  readonly node?: string
  readonly from?: { readonly apiGroup?: string; readonly kind: string; readonly name: string }
}

export function claimOf(request: NewClaim, namespace: string): PersistentVolumeClaim {
  return {
    metadata: {
      name: request.name,
      namespace,
      ...(request.node === undefined ? {} : { annotations: chosen(request.node) }),
    },
    spec: {
      accessModes: [request.mode],
      resources: { requests: { storage: request.size } },
      ...(request.class === undefined ? {} : { storageClassName: request.class }),
      ...(request.block ? { volumeMode: 'Block' } : {}),
      ...(request.from ? { dataSource: request.from } : {}),
    },
  }
}

/** Provisioning starts for the node at once, and stays there: no scheduler would choose another. */
const chosen = (node: string) => ({ [annotations.selectedNode]: node, [annotations.chosenNode]: node })

/** Makes the claim and follows it until there is a volume, or until only a first pod is missing. */
export async function createClaim(
  context: Context,
  { client, namespace }: Connection,
  request: NewClaim,
  options: { readonly wait: boolean; readonly timeout: number },
): Promise<void> {
  if (request.node !== undefined) {
    await requireNode(client, request.node)
    await requireDriver(client, request.node, await requestedClass(client, request.class))
  }
  const made = await client.create('PersistentVolumeClaim', claimOf(request, namespace))
  context.print(`persistentvolumeclaim/${request.name} created`)
  if (!options.wait) return
  const storageClass = await findClass(client, made)
  if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && request.node === undefined) {
    context.note(`class ${storageClass.metadata.name} provisions the volume when the first pod uses the claim`)
    context.note(`  try: hawser run --claim ${request.name}:/data${inNamespace(namespace)} -- ls -la /data`)
    return
  }
  const ref = { name: request.name, namespace }
  const wait = { kind: 'PersistentVolumeClaim', ref, timeoutMs: options.timeout * 1_000 } as const
  const volume = await waitUntil(context, client, wait, boundTo)
  context.print(`persistentvolumeclaim/${request.name} bound to ${volume}`)
}

export function boundTo(claim: PersistentVolumeClaim | undefined): Look<string> {
  if (!claim) return { done: 'failed', message: 'the claim was deleted meanwhile' }
  const phase = claim.status?.phase
  if (phase === 'Lost') return { done: 'failed', message: `its volume ${claim.spec?.volumeName} is lost` }
  if (phase === 'Bound') return { done: true, value: claim.spec?.volumeName ?? '' }
  return { done: false, waiting: `waiting for a volume for claim ${claim.metadata.name}` }
}

export function findClass(client: Client, claim: PersistentVolumeClaim): Promise<StorageClass | undefined> {
  return classNamed(client, classOf(claim))
}

async function classNamed(client: Client, name: string): Promise<StorageClass | undefined> {
  if (name === '') return undefined
  return await getIfExists(client, 'StorageClass', { name })
}

async function requestedClass(client: Client, name: string | undefined): Promise<StorageClass | undefined> {
  return name === undefined
    ? chooseDefaultClass((await client.list('StorageClass')).items)
    : await classNamed(client, name)
}

/** A claim for a node without its driver would be given back at once, and wait for a pod that can never come. */
async function requireDriver(client: Client, node: string, storageClass: StorageClass | undefined): Promise<void> {
  if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer') return
  const { provisioner, metadata } = storageClass
  const { items } = await client.list('CSINode')
  const having = items.filter(({ spec }) => (spec?.drivers ?? []).some(({ name }) => name === provisioner))
  const names = having.map((each) => each.metadata.name)
  // On no node: that is not about this node, and the wait tells it.
  if (names.length === 0 || names.includes(node)) return
  throw new Missing(
    `node ${node} does not have driver ${provisioner} of class ${metadata.name}, so no volume can be made for it`,
    `nodes with this driver: ${names.join(', ')}`,
  )
}

async function requireNode(client: Client, name: string): Promise<void> {
  const { items } = await client.list('Node')
  if (items.some(({ metadata }) => metadata.name === name)) return
  const known = items.map(({ metadata }) => metadata.name).join(', ')
  throw new Missing(`there is no node "${name}"`, known ? `nodes: ${known}` : 'hawser get nodes')
}
