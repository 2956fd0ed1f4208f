// What do the commands say? `why` without an object, `explain`, and commands that wait; the program's own, in this process.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { judgeDrivers } from '../../src/cli/doctor/drivers.ts'
import { driversInTrouble } from '../../src/why/driver-links.ts'
import { claimOf, createWholeCluster, podOfClaim } from '../kit/whole-cluster.ts'
import type { WholeCluster } from '../kit/whole-cluster.ts'
import { runCommand } from './corpus/play.ts'
import { addClaim, addPod, bound, pass } from './corpus/steps.ts'

async function withCluster(act: (cluster: WholeCluster) => Promise<void>): Promise<void> {
  const cluster = await createWholeCluster()
  try {
    await act(cluster)
  } finally {
    await cluster.stop()
  }
}
const words = (command: string) => command.split(' ').slice(1)

test('why without an object: nothing waits', () =>
  withCluster(async (cluster) => {
    const { text, exitCode } = await runCommand(cluster, words('hawser why'))
    assert.equal(text, 'namespace default: nothing waits')
    assert.equal(exitCode, 0)
  }))

test('why without an object: worst first, each trouble once, with the command that tells more', () =>
  withCluster(async (cluster) => {
    await bound(cluster)
    await addClaim('idle', { storageClassName: 'later' })(cluster)
    await addClaim('typo', { storageClassName: 'nowhere' })(cluster)
    await addPod(podOfClaim('waits', 'typo'))(cluster)
    cluster.driverDown()
    await addPod(podOfClaim('web', 'data'))(cluster)
    await pass(15_000)(cluster)
    const { text, exitCode } = await runCommand(cluster, words('hawser why'))
    assert.equal(exitCode, 4)
    const told = text.split('\n').filter((line) => line.startsWith('✗') || line.startsWith('    '))
    assert.match(told[0]!, /^✗ driver model\.hawser\.dev does not answer at/)
    assert.match(told[1]!, /^ {4}hawser why pod\/web$/)
    assert.match(told[2]!, /^✗ claim typo names class nowhere/)
    assert.match(told[3]!, /hawser why pod\/waits {3}# holds up 1 more: persistentvolumeclaim\/typo/)
    assert.match(told[4]!, /^✗ class later provisions a volume when the first pod/)
    assert.equal(told.length, 6, text)
    const all = await runCommand(cluster, words('hawser why -A -o json'))
    const items = JSON.parse(all.text) as { cause: string; others: { kind: string }[]; command: string }[]
    assert.equal(items[0]?.cause, 'driverUnavailable')
    assert.deepEqual(
      new Set(items.map(({ cause }) => cause)),
      new Set(['driverUnavailable', 'classMissing', 'firstConsumer']),
    )
    assert.ok(
      items[0].others.some(({ kind }) => kind === 'Node'),
      all.text,
    )
    assert.equal(all.exitCode, 4)
    cluster.driverUp()
  }))

test('why of another namespace names it in its commands', () =>
  withCluster(async (cluster) => {
    await cluster.client.create('Namespace', { metadata: { name: 'shop' } })
    await cluster.client.create('Pod', { ...podOfClaim('web', 'data'), metadata: { name: 'web', namespace: 'shop' } })
    await pass(2_000)(cluster)
    assert.equal((await runCommand(cluster, words('hawser why'))).exitCode, 0)
    const { text } = await runCommand(cluster, words('hawser why -n shop'))
    assert.match(text, /hawser why pod\/web -n shop/)
  }))

test('explain prints the page of a cause, lists all, and knows what was meant', () =>
  withCluster(async (cluster) => {
    const page = await runCommand(cluster, words('hawser explain classMissing'))
    assert.match(page.text, /^# The storage class does not exist\n/)
    assert.match(page.text, /## What helps/)
    assert.equal((await runCommand(cluster, words('hawser explain class-missing'))).text, page.text)
    const list = await runCommand(cluster, words('hawser explain'))
    assert.match(list.text, /classMissing +The storage class does not exist/)
    const typo = await runCommand(cluster, words('hawser explain clasMissing'))
    assert.match(typo.text, /did you mean classMissing or claimMissing\?/)
    assert.equal(typo.exitCode, 2)
  }))

test('a command that waits tells the cause, and stops when waiting is in vain', () =>
  withCluster(async (cluster) => {
    const started = performance.now()
    const { text, exitCode } = await runCommand(cluster, words('hawser volume create x --size 1Gi --class nowhere'))
    assert.match(text, /waiting does not help: claim x names class nowhere, which does not exist/)
    assert.match(text, /try: hawser why persistentvolumeclaim\/x/)
    assert.equal(exitCode, 4)
    assert.ok(performance.now() - started < 30_000, 'long before its timeout of 120 s')
  }))

test('volume create --node refuses a node without the driver, and names those that have it', async () => {
  const cluster = await createWholeCluster({
    nodes: ['n1', 'worker'],
    driverOn: ['n1'],
    model: { topologyKey: 'zone' },
  })
  try {
    const refused = await runCommand(
      cluster,
      words('hawser volume create x --size 1Gi --class later --node worker --no-wait'),
    )
    assert.match(refused.text, /node worker does not have driver model\.hawser\.dev of class later/)
    assert.match(refused.text, /nodes with this driver: n1/)
    assert.equal(refused.exitCode, 3)
    assert.deepEqual((await cluster.client.list('PersistentVolumeClaim')).items, [])
    const taken = await runCommand(
      cluster,
      words('hawser volume create x --size 1Gi --class later --node n1 --no-wait'),
    )
    assert.equal(taken.exitCode, 0, taken.text)
  } finally {
    await cluster.stop()
  }
})

test('volume create --node stops when the node has no room, and says how much there is', async () => {
  const cluster = await createWholeCluster({ model: { topologyKey: 'zone', capacityBytes: 1n << 30n } })
  try {
    const started = performance.now()
    const create = words('hawser volume create x --size 2Gi --class later --node n1')
    const { text, exitCode } = await whileLiving(cluster, runCommand(cluster, create))
    assert.match(text, /waiting does not help: node n1 has no room for the volume of claim x: .* requested, .* left/)
    assert.equal(exitCode, 4, text)
    assert.ok(performance.now() - started < 30_000, 'long before its timeout of 120 s')
  } finally {
    await cluster.stop()
  }
})

test('volume snapshot takes the default class of the driver of the volume, and names those that fit', () =>
  withCluster(async (cluster) => {
    const addClass = (name: string, driver: string, isDefault: boolean) =>
      cluster.client.create('VolumeSnapshotClass', {
        metadata: { name, annotations: { 'snapshot.storage.kubernetes.io/is-default-class': String(isDefault) } },
        driver,
        deletionPolicy: 'Delete',
      })
    await bound(cluster)
    await addClass('a-foreign', 'other.example.com', true)
    const snapshot = (more: string) =>
      runCommand(cluster, words(`hawser volume snapshot data --no-wait ${more}`.trim()))
    const none = await snapshot('--as s0')
    assert.match(none.text, /there is no VolumeSnapshotClass of driver model\.hawser\.dev/)
    assert.equal(none.exitCode, 3)
    await addClass('own', 'model.hawser.dev', false)
    const unchosen = await snapshot('--as s1')
    assert.match(unchosen.text, /driver model\.hawser\.dev has no default VolumeSnapshotClass/)
    assert.match(unchosen.text, /choose one: --class own/)
    assert.equal(unchosen.exitCode, 3)
    const foreign = await snapshot('--as s2 --class a-foreign')
    assert.match(
      foreign.text,
      /a-foreign is a class of driver other\.example\.com, the volume is of model\.hawser\.dev/,
    )
    assert.match(foreign.text, /choose one: --class own/)
    assert.deepEqual((await cluster.client.list('VolumeSnapshot')).items, [])
    await addClass('z-default', 'model.hawser.dev', true)
    assert.equal((await snapshot('--as s3')).exitCode, 0)
    await pass(10_000)(cluster)
    const [taken] = (await cluster.client.list('VolumeSnapshot')).items
    assert.deepEqual([taken?.spec.volumeSnapshotClassName, taken?.status?.readyToUse], ['z-default', true])
  }))

test('driver ls tells which driver is dead, where it listened, and since when', () =>
  withCluster(async (cluster) => {
    const before = await runCommand(cluster, words('hawser driver ls'))
    assert.match(before.text, /model\.hawser\.dev +ready +n1/)
    assert.equal(before.exitCode, 0)
    cluster.driverDown()
    await pass(15_000)(cluster)
    const { text, exitCode } = await runCommand(cluster, words('hawser driver ls'))
    assert.match(text, /model\.hawser\.dev +away +n1/)
    assert.match(text, /does not answer at \/run\/model\/csi\.sock: there is no socket.*since 2026-01-01T00:00:0/)
    assert.equal(exitCode, 4)
    const { items } = await cluster.client.list('Operation')
    const [finding] = judgeDrivers(driversInTrouble(items))
    assert.match(finding?.text ?? '', /driver model\.hawser\.dev does not answer at/)
    assert.equal(finding?.level, 'problem')
  }))

/** The cluster lives on while a command waits: its virtual time follows the real one, ten times as fast. */
async function whileLiving<T>({ clock }: WholeCluster, command: Promise<T>): Promise<T> {
  let over = false
  const ended = command.finally(() => void (over = true))
  while (!over) {
    await new Promise((resolve) => void setTimeout(resolve, 50))
    await clock.advance(500)
  }
  return ended
}

async function applyAndWait(cluster: WholeCluster, ...objects: object[]) {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-apply-'))
  try {
    const files = objects.map((object, index) => {
      const file = join(directory, `${index}.json`)
      writeFileSync(file, JSON.stringify(object))
      return ['-f', file]
    })
    return await whileLiving(cluster, runCommand(cluster, ['apply', '--wait', '--timeout', '30', ...files.flat()]))
  } finally {
    rmSync(directory, { recursive: true })
  }
}
const claimFile = (name: string, storageClassName: string) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  ...claimOf(name, { storageClassName }),
})
const podFile = (name: string, claim: string) => ({ apiVersion: 'v1', kind: 'Pod', ...podOfClaim(name, claim) })

test('apply names the file, the object and the field of a size that is none, and what was meant', () =>
  withCluster(async (cluster) => {
    const claim = claimOf('data', { resources: { requests: { storage: '1GB' } } })
    const { text, exitCode } = await applyAndWait(cluster, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      ...claim,
    })
    assert.match(
      text,
      /0\.json: persistentvolumeclaim\/data: spec\.resources\.requests\.storage: "1GB" is not a quantity; did you mean 1Gi or 1G\?/,
    )
    assert.equal(exitCode, 2)
  }))

test('apply --wait ends when claims are bound and pods run', () =>
  withCluster(async (cluster) => {
    const { text, exitCode } = await applyAndWait(
      cluster,
      claimFile('data', 'model'),
      claimFile('own', 'later'),
      podFile('web', 'own'),
      claimFile('idle', 'later'),
    )
    assert.match(text, /persistentvolumeclaim\/data bound to pvc-/)
    assert.match(text, /persistentvolumeclaim\/own bound to pvc-/)
    assert.match(text, /pod\/web runs/)
    assert.match(text, /class later provisions the volume of idle when the first pod uses the claim/)
    assert.equal(exitCode, 0, text)
  }))

test('apply --wait stops when the wait for any object is in vain, and tells the cause', () =>
  withCluster(async (cluster) => {
    cluster.setFaults((rpc) => (rpc === 'CreateVolume' ? { kind: 'silent' } : undefined))
    const started = performance.now()
    const { text, exitCode } = await applyAndWait(cluster, claimFile('slow', 'model'), podFile('web', 'missing'))
    assert.match(text, /waiting does not help: .*missing/)
    assert.match(text, /try: hawser why pod\/web/)
    assert.equal(exitCode, 4, text)
    assert.ok(performance.now() - started < 25_000, 'before its timeout')
  }))
