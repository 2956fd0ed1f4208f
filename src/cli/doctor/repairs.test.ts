// Which orphans may be removed, and which are kept? Facts in, plan out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MountInfo } from '../../host/host.ts'
import type { DirectoryFacts } from './leftovers.ts'
import type { HeldVolume } from './local-volumes.ts'
import type { ServerFacts } from './repairs.ts'
import { describeRepair, planRepairs } from './repairs.ts'

const uid = '6f1c1f0e-0000-4000-8000-000000000001'
const old = 3_600_000
const pod = `/d/node/pods/${uid}`
const staged = '/d/node/plugins/kubernetes.io/csi/local.hawser.dev/h'

const mount = (mountPoint: string, source = 'tmpfs', device = '0:50'): MountInfo => ({
  ...{ id: 1n, parentId: 0n, root: '/', type: 'tmpfs', options: [], superOptions: [], propagation: 'shared' },
  ...{ mountPoint, source, device },
})

const volume: HeldVolume = {
  ...{ kind: 'volume', id: 'v', path: '/d/volumes/volumes/v', hasRecord: true, hasImage: true, inline: false },
  ...{ ageMs: old, marks: [], madeFor: 'claim-uid' },
}

const directory: DirectoryFacts = {
  ...{ path: '/d', exists: true, mode: 0o711, freeBytes: 2 ** 40, diskBytes: 2 ** 41, holder: '12', under: undefined },
  ...{ mounts: [], loops: [], roots: [], held: [], staging: [], open: [], cluster: 'c', running: new Set<string>() },
  sockets: ['/d/node/plugins/local.hawser.dev/csi.sock'],
}

const server: ServerFacts = {
  cluster: 'c',
  pods: new Set(),
  storage: { volumes: new Map(), snapshots: new Map() },
  makers: new Set(),
}

const plan = (facts: Partial<DirectoryFacts>, known: Partial<ServerFacts> | undefined = {}, deleteData = true) => {
  const given = { ...directory, ...facts }
  const { repairs, kept } = planRepairs(given, known && { ...server, ...known }, { olderMs: 600_000, deleteData })
  return [...repairs.map(describeRepair), ...kept.map(({ what, why }) => `kept ${what}: ${why}`)]
}

const podDirectory = (ageMs = old, name = uid) => [{ root: '/d/node', pods: [{ uid: name, ageMs }] }]
const mounted = mount(`${pod}/volumes/kubernetes.io~empty-dir/m`)
const removal = `remove the pod directory ${pod} with all files in it`

test('a directory of no pod goes with its mounts, the deepest first', () => {
  const deep = mount(`${mounted.mountPoint}/deeper`)
  assert.deepEqual(plan({ roots: podDirectory(), mounts: [mounted, deep] }), [
    `unmount ${deep.mountPoint}`,
    `unmount ${mounted.mountPoint}`,
    removal,
  ])
})

const tooNew = 'it changed a short while ago (--older-than)'
const keptPods: readonly (readonly [string, Partial<DirectoryFacts>, Partial<ServerFacts>, readonly string[]])[] = [
  ['a pod that exists', {}, { pods: new Set([uid]) }, []],
  ['a pod with a process', { running: new Set([uid]) }, {}, [`kept ${pod}: a process of that pod still runs`]],
  ['what is new', { roots: podDirectory(1000) }, {}, [`kept ${pod}: ${tooNew}`]],
  [
    'what is no pod',
    { roots: podDirectory(old, 'mine') },
    {},
    ['kept /d/node/pods/mine: its name is not the uid of a pod'],
  ],
  [
    "somebody else's mount",
    { mounts: [mount(`${pod}/backup`)] },
    {},
    [`kept ${pod}: ${pod}/backup is no mount that a node makes`],
  ],
  [
    'what a server of another cluster does not know',
    {},
    { cluster: 'other' },
    ['kept /d: the server that answers is of another cluster than this directory'],
  ],
  [
    'a directory without a memory of its cluster',
    { cluster: undefined },
    {},
    ['kept /d: the directory does not say which cluster it belongs to'],
  ],
]
for (const [what, facts, known, expected] of keptPods)
  test(`kept: ${what}`, () => assert.deepEqual(plan({ roots: podDirectory(), ...facts }, known), expected))

test('without a server only loop devices and records go', () => {
  const { repairs, kept } = planRepairs({ ...directory, roots: podDirectory() }, undefined, {
    olderMs: 0,
    deleteData: true,
  })
  assert.deepEqual(repairs, [])
  assert.match(kept[0]?.why ?? '', /no server answers/)
})

test('a staging directory of no volume goes, unless a pod uses it', () => {
  const staging = [{ path: staged, driver: 'local.hawser.dev', handle: 'v', ageMs: old }]
  const own = mount(`${staged}/globalmount`, '/dev/loop3', '7:3')
  const gone = [`unmount ${staged}/globalmount`, `remove the staging directory ${staged}`]
  assert.deepEqual(plan({ staging, mounts: [own] }), gone)
  const use = mount(`${pod}/volumes/kubernetes.io~csi/pv/mount`, '/dev/loop3', '7:3')
  assert.deepEqual(plan({ staging, mounts: [own, use] }, { pods: new Set([uid]) }), [
    `kept ${staged}: a pod uses it at ${use.mountPoint}`,
  ])
  const volumes = new Map([['local.hawser.dev', new Set(['v'])]])
  assert.deepEqual(plan({ staging, mounts: [own] }, { storage: { ...server.storage, volumes } }), [])
})

test('a loop device goes if it holds an image of ours that nothing mounts or stages', () => {
  const file = '/d/volumes/volumes/v/image'
  const loop = { device: '/dev/loop3', file, deleted: false }
  const known = { storage: { ...server.storage, volumes: new Map([['local.hawser.dev', new Set(['v'])]]) } }
  const detach = [`detach /dev/loop3 from ${file}`]
  assert.deepEqual(plan({ loops: [loop], held: [volume] }, known), detach)
  assert.deepEqual(plan({ loops: [{ ...loop, deleted: true }] }), detach)
  const mark = { at: staged, file: '/d/volumes/volumes/v/stages/1' }
  assert.deepEqual(plan({ loops: [loop], held: [{ ...volume, marks: [mark] }] }, known), [])
  assert.deepEqual(plan({ loops: [loop], held: [volume], mounts: [mount('/d/x', '/dev/loop3')] }, known), [])
  assert.deepEqual(plan({ loops: [{ ...loop, file: '/d/node/own.img' }] }), [])
  assert.deepEqual(plan({ held: [{ ...volume, marks: [mark] }], holder: undefined }, known), [
    'remove the record /d/volumes/volumes/v/stages/1',
  ])
})

test('data goes only when asked for, and never what is being made', () => {
  const held = [volume]
  const kept = (why: string) => [`kept /d/volumes/volumes/v: ${why}`]
  assert.deepEqual(plan({ held }), ['delete volume v and its data'])
  assert.deepEqual(
    plan({ held }, {}, false),
    kept('it may hold data that was kept on purpose (--delete-data deletes it)'),
  )
  assert.deepEqual(
    plan({ held }, { makers: new Set(['claim-uid']) }),
    kept('the claim or snapshot that it is made for exists'),
  )
  assert.deepEqual(plan({ held, holder: undefined }), kept('its driver does not run'))
  assert.deepEqual(
    plan({ held: [{ ...volume, hasRecord: false }] }),
    kept('the driver has no record of it: look at it yourself'),
  )
  assert.deepEqual(plan({ held: [{ ...volume, ageMs: 1000 }] }), kept(tooNew))
})
