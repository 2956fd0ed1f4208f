// What do the commands say? `why` without an object, `explain`, and commands that wait; the program's own, in this process.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWholeCluster, podOfClaim } from '../kit/whole-cluster.ts'
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
