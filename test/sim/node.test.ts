// Does a node keep its promises whatever happens? Random pods, failures, restarts and a control plane in miniature; the volume's
// own record says what was mounted when. HAWSER_HEAVY=1 runs more seeds. A failure names its seed.
//
// 1. A device is not unmounted under a pod, and no pod is served before its device (INV-6).
// 2. What is mounted is in use according to the API, or was never reported attached (INV-8, NSP-3).
// 3. The control plane takes a volume only from a node that does not have it (INV-1).
// 4. No two operations that concern each other run together (INV-10).
// 5. When all is calm again, wanted pods run and nothing of the others is left (INV-5).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import { createRandom } from '../../src/clock/random.ts'
import type { Answer, Call } from '../kit/device-plugin.ts'
import { blockPod, createDiskWorld } from '../kit/node-with-disk.ts'
import { nodeName, pod, root } from '../kit/node.ts'
import type { Life } from '../kit/node.ts'
import { shakyClient } from '../kit/unreachable-server.ts'

const seeds = process.env['HAWSER_HEAVY'] === '1' ? 300 : 12
const callsOf: Record<'Filesystem' | 'Block', Call[]> = {
  Filesystem: ['waitForAttach', 'mountDevice', 'mount', 'unmount', 'unmountDevice'],
  Block: ['waitForAttach', 'setUpDevice', 'mapPodDevice', 'unmapPodDevice', 'tearDownDevice'],
}
const told: Answer[] = ['none', 'unknown', 'untried']
const names = ['a', 'b', 'c'] as const

async function play(seed: number, mode: 'Filesystem' | 'Block') {
  const random = createRandom(`node ${seed}`)
  const [calls, podOf] = [callsOf[mode], mode === 'Block' ? blockPod : pod]
  const faults = { api: 0 }
  const through = (client: Client) => shakyClient(client, () => random.chance(faults.api))
  const world = await createDiskWorld({ through, block: 'custom', volume: { volumeMode: mode } })
  world.host.addDisk('/dev/disk')
  const { files } = world.host.quiet
  const wrong: string[] = []
  const { plugin } = world
  plugin.traces = {
    make: (target) => files.mkdirAll(target, 0o750, world.signal),
    remove: (target) => files.remove(target, world.signal),
  }
  plugin.onEffect = (call, at) => {
    if (call === 'unmountDevice' && plugin.mounts.size > 0) wrong.push(`device unmounted under ${[...plugin.mounts]}`)
    if (call === 'tearDownDevice' && world.host.loops().length > 0) wrong.push('device torn down under a pod')
    if ((call === 'mount' || call === 'mapPodDevice') && plugin.devices.size === 0) {
      wrong.push(`pod served before its device: ${at}`)
    }
  }
  const mounted = () => plugin.devices.size + plugin.mounts.size + world.host.loops().length > 0
  let life: Life | undefined = await world.start()
  await world.clock.advance(500)

  /** The control plane: wanted or in use means attached; taken only from a node that says it does not use it. */
  const attached = async () => {
    const { status } = await world.client.get('Node', { name: nodeName })
    return (status?.volumesAttached ?? []).length > 0
  }
  const control = async () => {
    const wanted = (await world.client.list('Pod', {})).items.some(({ metadata }) => !metadata.deletionTimestamp)
    const used = (await world.inUse()).length > 0
    if (wanted && !(await attached())) await world.attach()
    if (!wanted && !used && (await attached())) {
      await world.nodeStatus({ volumesAttached: [] })
      if ((await world.inUse()).length > 0) await world.attach()
      else if (mounted()) wrong.push('taken while mounted')
    }
  }
  const check = async () => {
    if (mounted() && (await world.inUse()).length === 0) wrong.push('mounted, and not in use')
  }
  for (let turn = 0; turn < 40; turn++) {
    const name = random.pick(names)
    const found = (await world.client.list('Pod', {})).items.find(({ metadata }) => metadata.name === name)
    if (random.chance(0.4)) {
      if (!found) await world.create(podOf(name, world.volumes))
      else if (random.chance(0.5)) await world.remove(name)
      else await world.client.remove('Pod', { namespace: 'default', name })
    }
    if (random.chance(0.4)) plugin.answers.set(random.pick(calls), [random.pick(told), random.pick(told)])
    if (random.chance(0.1)) faults.api = random.chance(0.5) ? 0.3 : 0
    if (random.chance(0.1)) {
      life?.crash()
      life = random.chance(0.3) ? undefined : await world.start().catch(() => undefined)
    } else life ??= await world.start().catch(() => undefined)
    await world.clock.advance(random.pick([50, 300, 2_000, 20_000]))
    await control()
    await check()
  }
  plugin.answers.clear()
  faults.api = 0
  life ??= await world.start()
  for (let turn = 0; turn < 12; turn++) {
    await world.clock.advance(60_000)
    await control()
    await check()
  }
  const kept = (await world.client.list('Pod', {})).items.map(({ metadata, status }) => [metadata.name, status?.phase])
  for (const [name, phase] of kept) if (phase !== 'Running') wrong.push(`${name} is ${phase}`)
  for (const [name] of kept) await world.remove(name!)
  for (let turn = 0; turn < 6; turn++) {
    await world.clock.advance(60_000)
    await control()
  }
  const bound = (await world.host.quiet.mounts.list(world.signal)).filter(({ mountPoint }) =>
    mountPoint.includes('map'),
  )
  const left = [mounted(), bound.length, life.agent.actual.size, plugin.overlaps]
  const records = await files.readDir(`${root}/hawser-devices`, world.signal).catch(() => [])
  assert.deepEqual(
    { wrong, left, inUse: await world.inUse(), pods: await world.podDirectories(), records },
    { wrong: [], left: [false, 0, 0, 0], inUse: [], pods: [], records: [] },
    `seed ${seed}, ${mode}`,
  )
  await life.agent.stop()
}

for (const mode of ['Filesystem', 'Block'] as const) {
  test(`${seeds} random lives of a node, ${mode} (INV-1, INV-5, INV-6, INV-8, INV-10)`, async () => {
    for (let seed = 0; seed < seeds; seed++) await play(seed, mode)
  })
}
