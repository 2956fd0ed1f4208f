// `hawser stop`: ends the server and the agents of a data directory on this machine; with --pods, their pods first.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildCommand } from '@stricli/core'
import { UsageError } from '../../installation/config.ts'
import { lockHolder } from '../../installation/data-directory.ts'
import { noteHolder } from '../../installation/directory-lock.ts'
import { catchInterrupts } from '../interrupts.ts'
import { confirm, yesFlag } from '../confirm.ts'
import type { Connection } from '../connect.ts'
import { connect } from '../connect.ts'
import type { Context } from '../context.ts'
import { dataDirFlag, defaultDataDirectory } from '../defaults.ts'
import { nodeRoots } from '../doctor/leftovers.ts'
import { Missing, StillWaiting } from '../errors.ts'
import { stillDeleted, timeoutFlag, waitUntil } from '../wait.ts'

interface Flags {
  readonly dataDir?: string
  readonly kubeconfig?: string
  readonly pods: boolean
  readonly yes: boolean
  readonly timeout: number
}

export const stop = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Stop the server and agents of this machine',
    fullDescription: [
      'Sends SIGTERM to the server and the agents that use the data directory, and waits until they have ended.',
      'Pods and their mounts stay, and the next "hawser up" takes them over. With --pods, all pods on the nodes',
      'of this data directory are deleted first, so that nothing of them runs or is mounted. Volumes stay.',
      '',
      'Examples:',
      '  hawser stop',
      '  hawser stop --data-dir /srv/hawser',
      '  hawser stop --pods --yes',
    ].join('\n'),
  },
  parameters: {
    flags: {
      dataDir: dataDirFlag,
      kubeconfig: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'FILE',
        brief: 'With --pods: how to reach the server (default: <data-dir>/kubeconfig)',
      },
      pods: { kind: 'boolean', default: false, brief: 'Delete the pods of these nodes first' },
      yes: yesFlag,
      timeout: { ...timeoutFlag, brief: 'Timeout for pods, and then for processes' },
    },
    aliases: { y: 'yes' },
  },
  async func(flags) {
    const directory = resolve(flags.dataDir ?? defaultDataDirectory(this.process.env))
    const nodes = nodesOf(directory)
    const processes = processesOf(directory, nodes)
    if (processes.length === 0)
      throw new Missing(`no server and no agent uses ${directory}`, 'name another directory with --data-dir DIR')
    const unit = processes.map(unitOf).find((found) => found !== undefined)
    if (unit !== undefined && !flags.pods)
      throw new UsageError(`systemd runs it as ${unit} and would start it again`, `systemctl stop ${unit}`)
    if (flags.pods) {
      using connection = connect(this, { kubeconfig: flags.kubeconfig ?? join(directory, 'kubeconfig') })
      await deletePods(this, connection, nodes, flags)
      await untilUnstaged(directory, flags.timeout)
    }
    if (unit !== undefined) return this.note(`systemd runs it as ${unit}; now: systemctl stop ${unit}`)
    for (const pid of processes) process.kill(Number(pid), 'SIGTERM')
    await untilEnded(this, directory, nodes, flags.timeout)
  },
})

/** Each node of a data directory has a lock there, under its name. */
function nodesOf(directory: string): readonly string[] {
  const locks = join(directory, 'locks')
  return existsSync(locks) ? readdirSync(locks) : []
}

/** The living processes that hold the directory or one of its nodes, each once. */
function processesOf(directory: string, nodes: readonly string[]): readonly string[] {
  const holders = [
    lockHolder(directory),
    ...nodes.map((name) => noteHolder(join(directory, 'locks', name, 'node.lock'))),
  ]
  return [...new Set(holders.filter((pid) => pid !== undefined))]
}

/** The unit of ours that systemd would start again; a shell's own session is none. */
function unitOf(pid: string): string | undefined {
  try {
    return /\/(hawser[^/]*\.service)/.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'))?.[1]
  } catch {
    return undefined // it has just ended
  }
}

async function deletePods(
  context: Context,
  { client }: Connection,
  nodes: readonly string[],
  { yes, timeout }: Flags,
): Promise<void> {
  const lists = await Promise.all(nodes.map((name) => client.list('Pod', { fieldSelector: `spec.nodeName=${name}` })))
  const pods = lists.flatMap(({ items }) => items)
  if (pods.length === 0) return
  const refs = pods.map(({ metadata: { name, namespace = '' } }) => ({ name, namespace }))
  await confirm(
    context,
    refs.map(({ name, namespace }) => `delete pod ${namespace}/${name}`),
    yes,
  )
  for (const ref of refs) await client.remove('Pod', ref)
  for (const ref of refs) {
    const left = `${stillDeleted({ kind: 'Pod', ref })}, with ${refs.length} pods in all; nothing was stopped`
    const wait = { kind: 'Pod', ref, left, timeoutMs: timeout * 1_000 } as const
    await waitUntil(context, client, wait, (pod) =>
      pod ? { done: false, waiting: `waiting for pod ${ref.name} to end` } : { done: true, value: undefined },
    )
    context.print(`pod/${ref.name} deleted`)
  }
}

/**
 * A pod is gone when its own mounts are; its volumes are unstaged after that. The node has a record of each until then, and would
 * leave them with their loop devices if it ended now.
 */
async function untilUnstaged(directory: string, timeoutSeconds: number): Promise<void> {
  const end = performance.now() + timeoutSeconds * 1_000
  using interrupts = catchInterrupts()
  for (;;) {
    const left = nodeRoots(directory).flatMap((root) => namesIn(join(root, 'hawser-devices')))
    if (left.length === 0) return
    if (interrupts.signal.aborted)
      throw interrupts.error(`${left.length} volumes of the deleted pods are still staged; nothing was stopped`)
    if (performance.now() > end) {
      const text = `${left.length} volumes of the deleted pods are still staged after ${timeoutSeconds} s; nothing was stopped`
      throw new StillWaiting(`${text} (hawser why shows the cause; hawser stop without --pods leaves them as they are)`)
    }
    await sleep(50)
  }
}

const namesIn = (directory: string) => (existsSync(directory) ? readdirSync(directory) : [])

async function untilEnded(
  context: Context,
  directory: string,
  nodes: readonly string[],
  timeoutSeconds: number,
): Promise<void> {
  const end = performance.now() + timeoutSeconds * 1_000
  using interrupts = catchInterrupts()
  for (;;) {
    const left = processesOf(directory, nodes)
    if (left.length === 0) return context.print(`nothing uses ${directory} any more`)
    if (interrupts.signal.aborted)
      throw interrupts.error(`no longer waiting; process ${left.join(', ')} was told to stop and still runs`)
    if (performance.now() > end)
      throw new StillWaiting(`process ${left.join(', ')} still runs after ${timeoutSeconds} s`)
    await sleep(50)
  }
}
