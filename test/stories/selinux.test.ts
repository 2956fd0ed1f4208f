// Do volumes get the SELinux label of their pod? On a model host that says SELinux is on (no machine here has it): what the
// plugin is told, when a volume is mounted anew, and what is refused. KD-6, KA-6, REC-4, VM-12, LAYOUT-9, MEA-11, MEA-12.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UniqueVolumeName } from '../../src/api/names.ts'
import type { Waiting } from '../../src/node/volumes/plan.ts'
import { createDiskWorld } from '../kit/node-with-disk.ts'
import type { DiskWorldOptions } from '../kit/node-with-disk.ts'
import { pod, root } from '../kit/node.ts'

const file = 'system_u:object_r:container_file_t'
const withLevel = (level: string, more: object = {}) => ({ securityContext: { seLinuxOptions: { level }, ...more } })

async function worldWithLabels(options: DiskWorldOptions = {}) {
  const world = await createDiskWorld({ labels: true, volume: { accessModes: ['ReadWriteOncePod'] }, ...options })
  await world.host.quiet.files.writeFile(
    '/sys/fs/selinux/enforce',
    '1',
    { mode: 0o644, parentMode: 0o755 },
    world.signal,
  )
  const labelled: string[] = []
  world.host.programs.set('chcon', ({ argv }) => {
    labelled.push(argv.slice(1).join(' '))
    return { exitCode: 0, stdout: '', stderr: '' }
  })
  const { agent, metrics, crash } = await world.start()
  const run = async (name: string, more: object) => {
    await world.create(pod(name, world.volumes, more))
    await world.clock.advance(1_000)
    await world.attach()
    await world.clock.advance(2_000)
  }
  const counted = async () =>
    (await metrics.text()).split('\n').filter((line) => line.startsWith('volume_manager_selinux'))
  return { ...world, agent, crash, labelled, run, counted }
}

test('a volume of one pod is mounted with its label; the node’s own directories get theirs (VM-12, LAYOUT-9)', async () => {
  const world = await worldWithLabels()
  await world.run('p', withLevel('s0:c1,c2'))
  assert.deepEqual(world.plugin.labels, [`${file}:s0:c1,c2`])
  assert.equal(world.plugin.requests.at(-1)?.seLinuxLabel, `${file}:s0:c1,c2`)
  assert.deepEqual(world.labelled, [`${file}:s0 ${root}/plugins ${root}/plugins_registry`])
  assert.deepEqual(await world.counted(), [
    'volume_manager_selinux_volumes_admitted_total{volume_plugin="example.com/device",access_mode="RWOP"} 1',
  ])
  await world.agent.stop()
})

const plain: readonly [string, DiskWorldOptions, object][] = [
  ['without options', {}, {}],
  ['with the policy Recursive', {}, withLevel('s0:c1', { seLinuxChangePolicy: 'Recursive' })],
  ['of a plugin that cannot', { labels: false }, withLevel('s0:c1')],
  ['that several pods may use', { volume: { accessModes: ['ReadWriteMany'] } }, withLevel('s0:c1')],
]
for (const [name, options, more] of plain) {
  test(`a volume ${name} is mounted without a label (VM-12)`, async () => {
    const world = await worldWithLabels(options)
    await world.run('p', more)
    assert.deepEqual([world.plugin.labels, await world.phase('p')], [[undefined], 'Running'])
    await world.agent.stop()
  })
}

test('two labels in one pod are an error where they would be mounted, and a count where not (VM-12)', async () => {
  const containers = ['s0:c1', 's0:c2'].map((level) => ({
    name: level.replaceAll(':', '-'),
    image: 'i',
    command: ['run'],
    volumeMounts: [{ name: 'v', mountPath: '/v' }],
    ...withLevel(level),
  }))
  const refused = await worldWithLabels()
  await refused.run('p', { containers })
  assert.deepEqual(refused.plugin.labels, [])
  const [text = ''] = (await refused.events()).filter((each) => each.includes('SELinux'))
  assert.match(text, /FailedMount.*multiple SELinux labels found: .*:s0:c1,.*:s0:c2/)
  const counted = await worldWithLabels({ volume: { accessModes: ['ReadWriteMany'] } })
  await counted.run('p', { containers })
  assert.deepEqual([counted.plugin.labels, await counted.phase('p')], [[undefined], 'Running'])
  assert.match((await counted.counted()).join(), /pod_context_mismatch_warnings_total\{access_mode="RWX"\} \d/)
  await refused.agent.stop()
  await counted.agent.stop()
})

test('for a pod with another label the volume goes off the node and comes again (KD-6, REC-4)', async () => {
  const world = await worldWithLabels()
  await world.run('old', withLevel('s0:c1'))
  // Its container takes its time to end; meanwhile the next pod may not have the volume.
  await world.create(pod('new', world.volumes, withLevel('s0:c2')))
  await world.clock.advance(5_000)
  const conflict = /conflicting SELinux labels of volume pv: ".*:s0:c1" and ".*:s0:c2"/
  assert.ok(
    (await world.events()).some((text) => conflict.test(text)),
    (await world.events()).join('\n'),
  )
  assert.deepEqual(world.plugin.labels, [`${file}:s0:c1`])
  await world.remove('old')
  await world.clock.advance(60_000)
  assert.deepEqual(world.plugin.labels, [`${file}:s0:c1`, `${file}:s0:c2`])
  assert.equal(world.plugin.count('unmountDevice'), 1)
  assert.equal(await world.phase('new'), 'Running')
  await world.agent.stop()
})

test('a mount with another label that a restart found is waited for without keeping the node busy (REC-4, DES-13)', async () => {
  const script = () => ({ endsAfterMs: 1, exitCode: 1 })
  const world = await worldWithLabels({ script })
  const always = { restartPolicy: 'Always' }
  const uid = await world.create(pod('old', world.volumes, { ...withLevel('s0:c1'), ...always }))
  await world.clock.advance(1_000)
  await world.attach()
  await world.clock.advance(2_000)
  await world.create(pod('new', world.volumes, { ...withLevel('s0:c2'), ...always }))
  await world.clock.advance(400_000)
  await world.host.quiet.files.mkdirAll(`${root}/pods/${uid}/volumes/example.com~device/pv`, 0o750, world.signal)
  world.crash()
  world.plugin.restoredLabel = `${file}:s0:c1`
  const second = await world.start()
  // A volume that wakes itself would never let this test end: too many looks are an error, which ends them.
  const waiting = second.agent.waiting as Map<UniqueVolumeName, readonly Waiting[]>
  let looks = 0
  waiting.set = function (volume, waits) {
    assert.ok(++looks < 1_000, 'too many looks')
    return Map.prototype.set.call(this, volume, waits) as typeof this
  }
  await world.clock.advance(30_000)
  assert.ok(looks < 100, `${looks} looks`)
  assert.ok((await world.events()).some((text) => text.includes('with a different SELinux label')))
  await second.agent.stop()
})
