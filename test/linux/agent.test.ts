// Does the whole agent keep its promises on a real machine? Real mounts, real processes, kill -9 at random moments.
// Root only; everything lies below one directory and is gone at the end.
import assert from 'node:assert/strict'
import childProcess from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pod } from '../../src/api/generated/types.ts'
import { untilWhy } from '../kit/assert-why.ts'
import { podOn, sharedAgentFixture, until } from '../kit/agent-fixture.ts'
import { needsRoot as skip } from '../kit/machine.ts'

const bench = sharedAgentFixture()

function pod(name: string, more: Partial<NonNullable<Pod['spec']>> = {}): Pod {
  const volumes = [
    { name: 'a', emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } },
    { name: 'b', emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } },
    { name: 'c', emptyDir: {} },
    { name: 'd', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
    { name: 'e', hostPath: { path: '/etc' } },
  ]
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/volumes/${volume.name}` }))
  return podOn(name, {
    containers: [{ name: 'c', image: 'i', command: ['sleep', '3600'], volumeMounts }],
    volumes,
    ...more,
  })
}

test('kill -9 and restart: the container runs on, its volumes and their contents stay', { skip }, async () => {
  const made = await bench().client.create('Pod', pod('p'))
  const uid = made.metadata.uid!
  await until('pod runs', async () => (await bench().phaseOf('p')) === 'Running')
  const directory = join(bench().base, 'containers/n1', uid, 'c/0')
  const pid = readFileSync(join(directory, 'pid'), 'utf8')
  writeFileSync(join(bench().root, `pods/${uid}/volumes/kubernetes.io~empty-dir/a/data`), 'precious')
  const mounts = bench().podMounts()
  assert.equal(mounts.length, 3)

  await bench().endAgent('SIGKILL')
  // Nobody is there to take a pod that comes now.
  await bench().client.create('Pod', pod('late'))
  await untilWhy(bench().client, 'pod/late', 'nodeSilent')
  await bench().startAgent()
  await until('the late pod runs', async () => (await bench().phaseOf('late')) === 'Running')
  await bench().remove('late')
  await until('the late pod is gone', async () => (await bench().client.list('Pod', {})).items.length === 1)
  await sleep(1_000)
  assert.deepEqual(bench().podMounts(), mounts)
  assert.equal(readFileSync(join(directory, 'pid'), 'utf8'), pid)
  assert.ok(existsSync(`/proc/${pid.split(' ')[0]}`))
  assert.equal(readFileSync(`/proc/${pid.split(' ')[0]}/root/volumes/a/data`, 'utf8'), 'precious')
  assert.equal(await bench().phaseOf('p'), 'Running')
  await bench().remove('p')
  await bench().allGone()
  assert.equal(existsSync(`/proc/${pid.split(' ')[0]}`), false)
})

test(
  'kill -9 at random moments while pods come and go: all run in the end, and nothing is left when they are gone',
  { skip },
  async () => {
    const seed = Date.now() % 1_000
    for (let round = 0; round < 4; round++) {
      const names = Array.from({ length: 4 }, (_, index) => `r${round}-${index}`)
      await Promise.all(names.map((name) => bench().client.create('Pod', pod(name))))
      await sleep((seed + round * 37) % 150)
      await bench().endAgent('SIGKILL')
      await bench().startAgent()
      await until(`pods of round ${round} run (seed ${seed})`, async () =>
        (await Promise.all(names.map(bench().phaseOf))).every((phase) => phase === 'Running'),
      )
      assert.equal(bench().podMounts().length, 12)
      await Promise.all(names.map(bench().remove))
      await sleep((seed + round * 53) % 150)
      await bench().endAgent('SIGKILL')
      await bench().startAgent()
      await bench().allGone()
    }
  },
)

test('an exit code given while the agent was away is not lost', { skip }, async () => {
  const made = await bench().client.create(
    'Pod',
    pod('short', { containers: [{ name: 'c', image: 'i', command: ['sh', '-c', 'sleep 1; exit 7'] }], volumes: [] }),
  )
  await until('container started', () => existsSync(join(bench().base, 'containers/n1', made.metadata.uid!, 'c/0/pid')))
  await bench().endAgent('SIGKILL')
  await sleep(1_500)
  await bench().startAgent()
  await until('pod failed', async () => (await bench().phaseOf('short')) === 'Failed')
  const status = (await bench().client.get('Pod', { namespace: 'default', name: 'short' })).status
    ?.containerStatuses?.[0]
  assert.equal(status?.state?.terminated?.exitCode, 7)
  const { blocked } = await untilWhy(bench().client, 'pod/short', 'podFailed')
  assert.match(blocked?.sentence ?? '', /container c exited with code 7/)
  await bench().remove('short')
  await bench().allGone()
})

test(
  'planted mounts survive: an emptyDir with somebody else’s mount in it is not deleted through it',
  { skip },
  async () => {
    const made = await bench().client.create('Pod', pod('planted'))
    await until('pod runs', async () => (await bench().phaseOf('planted')) === 'Running')
    const outside = join(bench().base, 'outside')
    const inside = join(bench().root, `pods/${made.metadata.uid}/volumes/kubernetes.io~empty-dir/c/inner`)
    spawnSync('mkdir', '-p', outside, inside)
    writeFileSync(join(outside, 'keep'), 'me')
    spawnSync('mount', '--bind', outside, inside)
    await bench().remove('planted')
    await untilWhy(bench().client, 'pod/planted', 'deviceBusy')
    await sleep(3_000)
    assert.equal(readFileSync(join(outside, 'keep'), 'utf8'), 'me')
    spawnSync('umount', inside)
    await bench().allGone()
    assert.equal(readFileSync(join(outside, 'keep'), 'utf8'), 'me')
  },
)

function spawnSync(program: string, ...args: string[]): void {
  const result = childProcess.spawnSync(program, args)
  assert.equal(result.status, 0, `${program}: ${String(result.stderr)}`)
}

test(
  'a pod that fills its emptyDir above its sizeLimit is evicted; in memory the kernel stops it (EMPTY-10)',
  { skip },
  async () => {
    const fills = (name: string, emptyDir: NonNullable<NonNullable<Pod['spec']>['volumes']>[number]['emptyDir']) => {
      const script = 'dd if=/dev/zero of=/v/data bs=1M count=8; exec sleep 3600'
      const volumeMounts = [{ name: 'v', mountPath: '/v' }]
      return podOn(name, {
        containers: [{ name: 'c', image: 'i', command: ['sh', '-c', script], volumeMounts }],
        volumes: [{ name: 'v', emptyDir: emptyDir! }],
      })
    }
    await bench().client.create('Pod', fills('disk', { sizeLimit: '2Mi' }))
    await bench().client.create('Pod', fills('memory', { sizeLimit: '2Mi', medium: 'Memory' }))
    await until('it has failed', async () => (await bench().phaseOf('disk')) === 'Failed')
    const { status } = await bench().client.get('Pod', { namespace: 'default', name: 'disk' })
    assert.deepEqual(
      [status?.reason, status?.message],
      ['Evicted', 'Usage of EmptyDir volume "v" exceeds the limit "2Mi". '],
    )
    assert.equal(await bench().phaseOf('memory'), 'Running')
    await bench().remove('disk')
    await bench().remove('memory')
    await bench().allGone()
  },
)
