// `hawser node …`: take a node out of use, and back.
import { buildCommand } from '@stricli/core'
import { getIfExists } from '../../client/get-if-exists.ts'
import type { PersistentVolume, Pod } from '../../api/generated/types.ts'
import { factsOfNode, matchesNodeSelector } from '../../api/node-selector.ts'
import { refOf } from '../../api/meta.ts'
import { ignoreNotFound } from '../../api/status-error.ts'
import type { Client } from '../../client/client.ts'
import { confirm, yesFlag } from '../confirm.ts'
import type { ConnectFlags } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { Failed, Missing } from '../errors.ts'
import { buildRoutes } from '../routes.ts'
import { stillDeleted, timeoutFlag, waitUntil } from '../wait.ts'

const positional = {
  kind: 'tuple',
  parameters: [{ parse: String, placeholder: 'NODE', brief: 'Name of the node' }],
} as const

const cordon = schedulableCommand(false, {
  example: 'hawser node cordon worker-1',
  brief: 'Place no more pods on a node',
  done: (name) => `node ${name} gets no more pods`,
})

const uncordon = schedulableCommand(true, {
  example: 'hawser node uncordon worker-1',
  brief: 'Place pods on a node again',
  done: (name) => `node ${name} gets pods again`,
})

interface DrainFlags extends ConnectFlags {
  readonly timeout: number
}

const drain = buildCommand<DrainFlags, [string], Context>({
  docs: {
    brief: 'Place no more pods on a node, and remove its pods',
    fullDescription: [
      'Pods of manifests on the node itself stay. Volumes stay, too: those of the built-in driver lie on the node.',
      '',
      'Examples:',
      '  hawser node drain worker-1',
    ].join('\n'),
  },
  parameters: { flags: { ...connectFlags, timeout: timeoutFlag }, aliases: { n: 'namespace' }, positional },
  async func(flags, name) {
    using connection = connect(this, flags)
    const { client } = connection
    await setUnschedulable(client, name, true)
    const pods = (await podsOn(client, name)).filter((pod) => !isMirror(pod))
    for (const pod of pods) await evict(client, pod)
    for (const pod of pods) {
      const { uid, name: podName } = pod.metadata
      const stopped = { kind: 'Pod', ref: refOf(pod) } as const
      const left = `${stillDeleted(stopped)}; node ${name} gets no new pods (hawser node uncordon ${name})`
      const request = { ...stopped, left, timeoutMs: flags.timeout * 1_000 }
      await waitUntil(this, client, request, (found) =>
        found === undefined || found.metadata.uid !== uid
          ? { done: true, value: undefined }
          : { done: false, waiting: `pod ${podName} stops` },
      )
      this.print(`pod ${podName} is removed`)
    }
    this.print(`node ${name} is drained`)
  },
})

interface RemoveFlags extends ConnectFlags {
  readonly yes: boolean
  readonly force: boolean
}

const rm = buildCommand<RemoveFlags, [string], Context>({
  docs: {
    brief: 'Remove a node, and shut its agent out',
    fullDescription: [
      'Removes the node and its certificate: its agent can do nothing more, and joins again only with a new token.',
      'Drain the node and stop its agent first. Data of the built-in driver stays on the machine.',
      '',
      'Examples:',
      '  hawser node drain worker-1',
      '  hawser node rm worker-1 --yes',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      yes: yesFlag,
      force: { kind: 'boolean', default: false, brief: 'Also if pods are still bound to it: they are removed unseen' },
    },
    aliases: { n: 'namespace' },
    positional,
  },
  async func(flags, name) {
    using connection = connect(this, flags)
    const { client } = connection
    const node = await getIfExists(client, 'Node', { name })
    if (!node && !(await client.get('Secret', recordRef(name)).catch(ignoreNotFound)))
      throw new Missing(`there is no node ${name}`, 'hawser get nodes')
    const pods = await podsOn(client, name)
    if (pods.length > 0 && !flags.force)
      throw new Failed(`node ${name} still has ${pods.length} pods; first: hawser node drain ${name}`)
    const volumes = node ? (await client.list('PersistentVolume')).items.filter((each) => liesOn(each, node)) : []
    const plan = [
      `node ${name} is removed, and its agent shut out`,
      ...volumes.map(
        ({ metadata }) => `volume ${metadata.name} lies there: it can be used and deleted only when the node is back`,
      ),
    ]
    await confirm(this, plan, flags.yes)
    // The certificate first: an agent that still runs would make its Node anew.
    await client.remove('Secret', recordRef(name)).catch(ignoreNotFound)
    for (const pod of pods) await client.remove('Pod', refOf(pod), { gracePeriodSeconds: 0 }).catch(ignoreNotFound)
    await client.remove('CSINode', { name }).catch(ignoreNotFound)
    await client.remove('Lease', { namespace: 'kube-node-lease', name }).catch(ignoreNotFound)
    await client.remove('Node', { name }).catch(ignoreNotFound)
    this.print(`node ${name} is removed`)
  },
})

export const node = buildRoutes({
  routes: { cordon, uncordon, drain, rm },
  docs: {
    brief: 'Take nodes out of use, and back',
    fullDescription: ['Examples:', '  hawser node drain worker-1', '  hawser node uncordon worker-1'].join('\n'),
  },
})

function schedulableCommand(
  isSchedulable: boolean,
  texts: { readonly example: string; readonly brief: string; readonly done: (name: string) => string },
) {
  return buildCommand<ConnectFlags, [string], Context>({
    docs: { brief: texts.brief, fullDescription: `Pods that run there stay.\n\nExamples:\n  ${texts.example}` },
    parameters: { flags: connectFlags, aliases: { n: 'namespace' }, positional },
    async func(flags, name) {
      using connection = connect(this, flags)
      await setUnschedulable(connection.client, name, !isSchedulable)
      this.print(texts.done(name))
    },
  })
}

async function setUnschedulable(client: Client, name: string, unschedulable: boolean): Promise<void> {
  const body = { spec: { unschedulable: unschedulable ? true : null } }
  await client.patch('Node', { name }, { type: 'merge', body })
}

async function podsOn(client: Client, node: string): Promise<readonly Pod[]> {
  return (await client.list('Pod', { fieldSelector: `spec.nodeName=${node}` })).items
}

function isMirror({ metadata }: Pod): boolean {
  return metadata.annotations?.['kubernetes.io/config.mirror'] !== undefined
}

async function evict(client: Client, pod: Pod): Promise<void> {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: refOf(pod) }
  await client.post('Pod', refOf(pod), 'eviction', body).catch(ignoreNotFound)
}

function liesOn({ spec }: PersistentVolume, node: Parameters<typeof factsOfNode>[0]): boolean {
  const required = spec?.nodeAffinity?.required
  return required !== undefined && matchesNodeSelector(required, factsOfNode(node))
}

const recordRef = (name: string) => ({ namespace: 'kube-system', name: `node-certificates-${name}` })
