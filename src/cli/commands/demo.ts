// `hawser demo`: the whole main job in a temporary directory, with a timeline, and proof that nothing stays.
import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildCommand } from '@stricli/core'
import type { HawserConfig } from '../../installation/config.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { createPinoLog } from '../../telemetry/pino-log.ts'
import { connect } from '../connect.ts'
import type { Context } from '../context.ts'
import { findLeftovers, isEmpty, mountsBelow, removeEverything } from '../demo/proof.ts'
import { act, phase, tellStory } from '../demo/story.ts'
import { tellModelStory } from '../demo/model-story.ts'
import type { MachineFacts } from '../doctor/machine.ts'
import { mayMount, readMachine } from '../doctor/machine.ts'
import { exitCodes } from '../exit-codes.ts'
import { duration, paint } from '../output.ts'
import { ownCommand } from '../own-command.ts'

interface Flags {
  readonly model: boolean
  readonly keep: boolean
}

const nodes = ['one', 'two'] as const

export const demo = buildCommand<Flags, [], Context>({
  docs: {
    brief: 'Show the life of a volume in a minute',
    fullDescription: [
      'Starts a server with two nodes in a temporary directory. Provisions, writes, moves, expands, snapshots, restores',
      'and deletes a volume, shows how long each phase took, and checks that nothing is left behind.',
      'Without root, or with --model, it runs on model hosts and storage.',
      '',
      'Examples:',
      '  sudo hawser demo',
      '  hawser demo --model',
    ].join('\n'),
  },
  parameters: {
    flags: {
      model: { kind: 'boolean', default: false, brief: 'Use model hosts and storage instead of this machine' },
      keep: { kind: 'boolean', default: false, brief: 'Keep the temporary directory after a failure' },
    },
  },
  async func(flags) {
    const missing = missingFor(readMachine(this.process.env))
    if (!flags.model && missing.length === 0) return realDemo(this, flags)
    if (missing.length > 0) {
      this.print('To provision, mount, expand and snapshot volumes on this machine, this is missing:')
      for (const each of missing) this.print(`  ${each}`)
      this.print(
        'So this demo uses the real API server, controllers, CSI jobs and node agents on model hosts and storage.',
      )
    }
    await tellModelStory(this)
  },
})

/** What keeps the real story from being told here. */
export function missingFor(facts: MachineFacts): string[] {
  const { platform, uid, loopControl, tools } = facts
  const rules: readonly (readonly [boolean, string])[] = [
    [platform !== 'linux', 'Linux'],
    [uid !== 0, 'root (try: sudo hawser demo)'],
    [uid === 0 && !mayMount(facts), 'the capability CAP_SYS_ADMIN, to mount'],
    [!loopControl, 'loop devices (/dev/loop-control; try: modprobe loop)'],
    [!tools.has('mkfs.ext4'), 'mkfs.ext4 (try: apt-get install e2fsprogs)'],
    [!tools.has('blkid'), 'blkid (try: apt-get install util-linux)'],
  ]
  return rules.flatMap(([absent, what]) => (absent ? [what] : []))
}

async function realDemo(context: Context, flags: Flags): Promise<void> {
  const start = performance.now()
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-demo-')))
  const stop = new AbortController()
  const onSignal = () => stop.abort(new Error('interrupted'))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  let failure: unknown
  try {
    await perform(context, directory, stop.signal)
  } catch (error) {
    failure = error
  }
  const told = failure === undefined
  act(context, 6, told ? 'nothing is left' : 'cleaning up')
  const left = findLeftovers(directory)
  if (told) {
    context.print(
      `  volume mounts: ${left.mounts.length}, loop devices: ${left.loops.length}, image files: ${left.images.length}`,
    )
    if (!isEmpty(left)) failure = new Error(`left behind: ${JSON.stringify(left)}`)
  }
  if (failure !== undefined && flags.keep)
    context.note(`  kept: ${directory} (look with: hawser doctor --data-dir ${directory})`)
  else await sweep(context, directory)
  process.removeListener('SIGINT', onSignal).removeListener('SIGTERM', onSignal)
  if (failure !== undefined) {
    context.note(`hawser: the demo failed: ${errorText(failure)}`)
    return context.fail(exitCodes.failed)
  }
  context.print('')
  const next = `${ownCommand(context.process.env['PATH'] ?? '', process.cwd())} up`
  context.print(paint(context, 'green', `Done in ${duration(performance.now() - start)}. Now for real: ${next}`))
}

async function perform(context: Context, directory: string, signal: AbortSignal): Promise<void> {
  const start = performance.now()
  const { startHawser } = await import('../../main/all-in-one.ts')
  context.print(paint(context, 'bold', `0. everything starts in ${directory}`))
  await using hawser = await startHawser(configOf(directory), { log: createPinoLog({ level: 'error' }) })
  phase(
    context,
    'start',
    performance.now() - start,
    `API server, controllers, CSI driver, nodes ${nodes.join(' and ')}`,
  )
  using connection = connect(context, { kubeconfig: hawser.kubeconfig })
  const { capabilities } = readMachine(context.process.env)
  const growsOnline = ((capabilities >> 24n) & 1n) === 1n
  try {
    await tellStory({ context, connection, directory, nodes, growsOnline, signal })
  } catch (error) {
    await endPods(connection)
    throw error
  }
}

/** After a failure: processes must not outlive the demo. */
async function endPods({ client }: ReturnType<typeof connect>): Promise<void> {
  const { items } = await client.list('Pod')
  for (const { metadata } of items) {
    const ref = { name: metadata.name, namespace: metadata.namespace ?? 'default' }
    await client.remove('Pod', ref, { gracePeriodSeconds: 0 }).catch(() => undefined)
  }
  for (let tries = 0; tries < 50 && (await client.list('Pod')).items.length > 0; tries++)
    await new Promise((resolve) => setTimeout(resolve, 100))
}

async function sweep(context: Context, directory: string): Promise<void> {
  const left = await removeEverything(directory)
  if (left.length === 0) context.print(`  ${directory} is removed; mounts below it: ${mountsBelow(directory).length}`)
  else context.note(`  could not remove: ${left.join(', ')}`)
}

function configOf(directory: string): HawserConfig {
  return {
    dataDirectory: directory,
    // A free port of the system's choice: the demo disturbs nobody.
    listen: { host: '127.0.0.1', port: 0 },
    store: 'embedded',
    bare: false,
    nodes: nodes.map((name) => ({ name, root: join(directory, 'nodes', name) })),
    csiDrivers: [],
    // Nothing is left outside: the usual place of FlexVolume drivers would be made.
    volumePluginDirectory: join(directory, 'volume-plugins'),
    leaveToSidecars: [],
    runtime: 'process',
    forceDetachOnTimeout: true,
  }
}
