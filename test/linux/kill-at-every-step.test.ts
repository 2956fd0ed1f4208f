// Does it matter when an agent dies? It is killed (SIGKILL) at the beginning of every step of every volume operation, at each
// operation's end, and after every change it makes to the machine while a pod comes and goes; then it is started again.
// Each time the pod must run in the end, nothing may be left when it is gone, and a second pod with the same kinds of
// volumes (a filesystem on a device, memory, a configMap, a raw block device) must not notice anything.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Pod } from '../../src/api/generated/types.ts'
import type { AgentFixture } from '../kit/agent-fixture.ts'
import { createDisk, openAgentFixture, podOn, until } from '../kit/agent-fixture.ts'
import { loopsBelow, needsRoot } from '../kit/machine.ts'

const skip = process.env['HAWSER_HEAVY'] === '1' ? needsRoot : 'heavy'

test(
  'kill -9 at every step of mount and unmount, then restart: nothing leaked, nothing taken from a running pod',
  { skip, timeout: 700_000 },
  async (context) => {
    await using bench = await openAgentFixture()
    const { client } = bench
    await client.create('ConfigMap', { metadata: { name: 'words', namespace: 'default' }, data: { greeting: 'hello' } })
    for (const owner of ['witness', 'victim']) {
      await createDisk(bench, `${owner}-filesystem`, 'Filesystem')
      await createDisk(bench, `${owner}-block`, 'Block')
    }
    await bench.startAgent()
    const uid = (await client.create('Pod', podWithAll('witness'))).metadata.uid!
    await until('the witness runs', async () => (await bench.phaseOf('witness')) === 'Running')
    const calm = pictureOf(bench, uid)
    assert.equal(calm.mounts.length, 4, calm.mounts.join('\n'))

    // A life without trouble tells the points, in the order in which they are passed.
    const file = join(bench.base, 'points')
    await bench.endAgent('SIGTERM')
    await bench.startAgent({ HAWSER_TEST_POINTS: file })
    writeFileSync(file, '')
    await client.create('Pod', podWithAll('victim'))
    await until('the victim runs', async () => (await bench.phaseOf('victim')) === 'Running')
    const up = pointsIn(file)
    writeFileSync(file, '')
    await bench.remove('victim')
    await until('the victim is gone', () => leftOf(bench, uid).length === 0)
    const down = pointsIn(file)
    context.diagnostic(`${up.length} points on the way up, ${down.length} on the way down`)
    for (const operation of ['volume_mount', 'map_volume'])
      assert.ok(
        up.some((point) => point.startsWith(`step ${operation} `)),
        `${operation} is not among the points`,
      )
    for (const operation of ['volume_unmount', 'unmap_volume', 'unmount_device', 'unmap_device'])
      assert.ok(
        down.some((point) => point.startsWith(`step ${operation} `)),
        `${operation} is not among the points`,
      )

    const missed: string[] = []
    await bench.endAgent('SIGTERM')
    // HAWSER_TEST_ROUND=12 repeats one round only.
    const only = process.env['HAWSER_TEST_ROUND']
    for (let round = 0; round < Math.max(up.length, down.length); round++) {
      if (only !== undefined && Number(only) !== round) continue
      const [upPoint, downPoint] = [up[round], down[round]]
      try {
        const diedEarly = await startAgain(bench, upPoint)
        const made = await client.create('Pod', podWithAll('victim'))
        const running = async () => (await bench.phaseOf('victim')) === 'Running'
        if (!(await diesBefore(bench, running)) && !diedEarly && upPoint) missed.push(upPoint)
        await bench.endAgent('SIGKILL')
        const diedEarlyAgain = await startAgain(bench, downPoint)
        await reach(bench, 'the victim runs', running)
        checkVolumes(bench, made.metadata.uid!)
        await bench.remove('victim')
        const gone = () => Promise.resolve(leftOf(bench, uid).length === 0)
        if (!(await diesBefore(bench, gone)) && !diedEarlyAgain && downPoint) missed.push(downPoint)
        await reach(bench, () => `nothing of the victim is left: ${leftOf(bench, uid).join(' ')}`, gone)
        await podGone(bench)
        assert.deepEqual(pictureOf(bench, uid), calm)
      } catch (error) {
        throw new Error(`round ${round}, killed at "${upPoint}" and "${downPoint}"`, { cause: error })
      }
      await bench.endAgent('SIGKILL')
    }
    context.diagnostic(
      `${up.length + down.length - missed.length} kills; not passed again: ${missed.join('; ') || 'none'}`,
    )
    assert.deepEqual(
      missed.filter((point) => !point.startsWith('after ')),
      [],
      'steps at which the agent was never killed',
    )
    await startAgain(bench, undefined)
    await bench.remove('witness')
    await bench.allGone()
    assert.deepEqual(loopsBelow(join(bench.base, 'node')), [])
  },
)

function podWithAll(owner: string): Pod {
  const mounted = ['disk', 'memory', 'words']
  return podOn(owner, {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'c',
        image: 'i',
        command: ['sleep', '3600'],
        volumeMounts: mounted.map((name) => ({ name, mountPath: `/volumes/${name}` })),
        volumeDevices: [{ name: 'raw', devicePath: '/dev/raw-disk' }],
      },
    ],
    volumes: [
      { name: 'disk', persistentVolumeClaim: { claimName: `${owner}-filesystem` } },
      { name: 'raw', persistentVolumeClaim: { claimName: `${owner}-block` } },
      { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
      { name: 'words', configMap: { name: 'words' } },
    ],
  })
}

const pointsIn = (file: string) => [...new Set(readFileSync(file, 'utf8').split('\n').filter(Boolean))]

/** Every mount that shows something of the pod or of its disks, by the kernel's own number, and the container. */
function pictureOf({ base, root }: AgentFixture, uid: string) {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(`${root}/`) && (line.includes(uid) || line.includes('witness-')))
    .map((line) => [line.split(' ')[0], line.split(' ')[4]].join(' '))
  const [pid] = readFileSync(join(base, 'containers/n1', uid, 'c/0/pid'), 'utf8').split(' ')
  const greeting = readFileSync(`/proc/${pid}/root/volumes/words/greeting`, 'utf8')
  return { mounts: mounts.sort(), pid, greeting, loops: loopsBelow(root).filter((device) => isOf(device, uid)) }
}
const isOf = (device: string, uid: string) => unlessGone(() => backingOf(device))?.includes(uid) ?? false
const backingOf = (device: string) =>
  readFileSync(`/sys/block/${device.slice('/dev/'.length)}/loop/backing_file`, 'utf8')

/** What is looked at may go away while we look. */
function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function checkVolumes({ base }: AgentFixture, uid: string): void {
  const [pid] = readFileSync(join(base, 'containers/n1', uid, 'c/0/pid'), 'utf8').split(' ')
  const inside = `/proc/${pid}/root`
  assert.equal(readFileSync(`${inside}/volumes/words/greeting`, 'utf8'), 'hello')
  writeFileSync(`${inside}/volumes/memory/data`, 'x')
  writeFileSync(`${inside}/volumes/disk/data`, 'x')
  const types = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
  assert.match(types, / \/volumes\/disk .* - ext4 /)
  assert.match(types, / \/volumes\/memory .* - tmpfs /)
  assert.match(types, / \/dev\/raw-disk /)
}

/** What is on this machine that is neither the witness's nor always there. */
function leftOf({ base, root, podMounts, podDirectories }: AgentFixture, witness: string): string[] {
  const plugins = join(root, 'plugins')
  return [
    ...podMounts().filter((path) => !path.includes(witness)),
    ...podDirectories().filter((name) => name !== witness),
    ...readdirSync(join(base, 'containers/n1')).filter((name) => name !== witness),
    ...loopsBelow(root).filter((device) => unlessGone(() => !backingOf(device).includes(witness)) ?? false),
    // A folder that vanishes under the search means that the cleaning still goes on.
    ...(unlessGone(() => readdirSync(plugins, { recursive: true, encoding: 'utf8' })) ?? ['victim-?']).filter((path) =>
      path.includes('victim-'),
    ),
  ]
}

const podGone = ({ client }: AgentFixture) =>
  until('its object is gone', async () => (await client.list('Pod', { namespace: 'default' })).items.length === 1)

/** True when the point was passed, and the agent killed, while it set up the witness's volumes again. */
async function startAgain(bench: AgentFixture, killAt: string | undefined): Promise<boolean> {
  const ready = await bench.startAgent(killAt === undefined ? {} : { HAWSER_TEST_KILL_AT: killAt })
  if (!ready) await bench.startAgent()
  return !ready
}

const isAlive = ({ agent }: AgentFixture) => agent.exitCode === null && agent.signalCode === null

/** True when the agent was killed before the goal was reached, or just then. */
async function diesBefore(bench: AgentFixture, goal: () => Promise<boolean>): Promise<boolean> {
  await until('the agent dies or gets there', async () => !isAlive(bench) || (await goal()))
  for (let waited = 0; waited < 10 && isAlive(bench); waited++) await new Promise((resolve) => setTimeout(resolve, 10))
  return !isAlive(bench)
}

/** Gets there, with a new agent if the present one has died. */
async function reach(bench: AgentFixture, what: string | (() => string), goal: () => Promise<boolean>): Promise<void> {
  if (!isAlive(bench)) await startAgain(bench, undefined)
  await until(what, goal, 40_000)
}
