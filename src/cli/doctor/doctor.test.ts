// Does the doctor judge rightly? Facts in, findings out.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MountInfo } from '../../host/host.ts'
import { doctorKubeconfig } from './kubeconfig.ts'
import type { DirectoryFacts } from './leftovers.ts'
import type { HeldVolume } from './local-volumes.ts'
import { judgeDirectory, podOf } from './leftovers.ts'
import type { MachineFacts } from './machine.ts'
import { judgeMachine } from './machine.ts'

const healthy: MachineFacts = {
  platform: 'linux',
  kernel: '6.1.0-12-amd64',
  uid: 0,
  capabilities: (1n << 41n) - 1n,
  tools: new Set(
    'mount mkfs.ext4 e2fsck resize2fs dumpe2fs blkid fsck fsfreeze mkfs.xfs xfs_growfs mkfs.btrfs btrfs mount.nfs iscsiadm'.split(
      ' ',
    ),
  ),
  loopControl: true,
  fuse: true,
}

const levels = (facts: Partial<MachineFacts>) =>
  judgeMachine({ ...healthy, ...facts })
    .filter(({ level }) => level !== 'ok')
    .map(({ level, about, fix }) => [level, about, fix])

const without = (tool: string) => new Set([...healthy.tools].filter((name) => name !== tool))

const machines: readonly (readonly [string, Partial<MachineFacts>, readonly unknown[]])[] = [
  ['a fit machine has nothing to mend', {}, []],
  ['an old kernel is a problem', { kernel: '5.4.0-1' }, [['problem', 'kernel', 'use a newer kernel']]],
  ['5.10 is newer than 5.8', { kernel: '5.10.0' }, []],
  [
    'a user without rights is told to use sudo',
    { uid: 1000, capabilities: 0n },
    [['problem', 'rights', 'sudo hawser up']],
  ],
  [
    'root without CAP_SYS_RESOURCE is a warning: ext4 then grows at the next mount',
    { capabilities: healthy.capabilities & ~(1n << 24n) },
    [['warn', 'rights', 'run with that capability (docker run --cap-add SYS_RESOURCE)']],
  ],
  [
    'root without CAP_SYS_ADMIN cannot mount',
    { capabilities: healthy.capabilities & ~(1n << 21n) },
    [['problem', 'rights', 'run with that capability (docker run --cap-add SYS_ADMIN)']],
  ],
  ['mkfs.ext4 is needed always', { tools: without('mkfs.ext4') }, [['problem', 'tools', 'apt-get install e2fsprogs']]],
  ['xfs is needed by some', { tools: without('mkfs.xfs') }, [['warn', 'tools', 'apt-get install xfsprogs']]],
  ['loop devices are needed', { loopControl: false }, [['problem', 'loop devices', 'modprobe loop']]],
  ['FUSE is a choice', { fuse: false }, [['warn', 'fuse', 'modprobe fuse']]],
]

for (const [name, facts, expected] of machines) test(name, () => assert.deepEqual(levels(facts), expected))

test('another system than Linux ends the examination', () => {
  assert.equal(judgeMachine({ ...healthy, platform: 'darwin' }).length, 1)
})

const mount = (mountPoint: string, source = '/dev/loop3'): MountInfo => ({
  id: 1n,
  parentId: 0n,
  mountPoint,
  root: '/',
  device: '7:3',
  type: 'ext4',
  source,
  options: [],
  superOptions: [],
  propagation: 'shared',
})

const directory: DirectoryFacts = {
  path: '/d',
  exists: true,
  mode: 0o711,
  freeBytes: 2 ** 40,
  diskBytes: 2 ** 41,
  holder: '12',
  mounts: [mount('/d/node', '/dev/sda1')],
  under: mount('/', '/dev/sda1'),
  loops: [],
  roots: [{ root: '/d/node', pods: [] }],
  sockets: [],
  held: [],
  staging: [],
  open: [],
  cluster: 'c',
  running: new Set(),
}

const found = (facts: Partial<DirectoryFacts>, pods?: readonly string[]) =>
  judgeDirectory({ ...directory, ...facts }, pods && new Set(pods))
    .filter(({ level }) => level !== 'ok')
    .map(({ level, about, fix }) => [level, about, fix])

const held: HeldVolume = {
  kind: 'volume',
  id: 'v',
  path: '/d/volumes/volumes/v',
  hasRecord: true,
  hasImage: true,
  inline: false,
  ageMs: 3_600_000,
  marks: [],
}

const judged = (facts: Partial<DirectoryFacts>, volumes: readonly string[]) =>
  judgeDirectory({ ...directory, ...facts }, new Set(), {
    volumes: new Map([['local.hawser.dev', new Set(volumes)]]),
    snapshots: new Map(),
  })
    .filter(({ level }) => level !== 'ok')
    .map(({ level, about, fix }) => [level, about, fix])

const podMount = '/d/node/pods/u1/volumes/kubernetes.io~csi/pv/mount'

test('a directory in order has nothing to mend', () => assert.deepEqual(found({}, []), []))

test('a disk that is nearly full is a warning, and a full one a problem', () => {
  const fix = 'free space on the disk of /d, or enlarge it'
  assert.deepEqual(found({ freeBytes: 1.5 * 2 ** 30 }, []), [['warn', 'data directory', fix]])
  assert.deepEqual(found({ freeBytes: 0.5 * 2 ** 30 }, []), [['problem', 'data directory', fix]])
})

test('mounts of pods that exist are fine, others are unmounted deepest first', () => {
  const mounts = [mount(podMount), mount('/d/node/pods/u1/volume-subpaths/v/c/0/deep/deeper/deepest')]
  assert.deepEqual(found({ mounts }, ['u1']), [])
  assert.deepEqual(found({ mounts }, []), [
    ['problem', 'mounts', 'umount /d/node/pods/u1/volume-subpaths/v/c/0/deep/deeper/deepest'],
    ['problem', 'mounts', `umount ${podMount}`],
  ])
})

test('mounts that wait for the next start are told once', () => {
  assert.deepEqual(found({ mounts: [mount(podMount)], holder: undefined }), [
    ['warn', 'mounts', 'hawser up --data-dir /d (takes them over again and cleans up after deleted pods)'],
  ])
})

test('a pod directory without a pod is told, but never to be deleted by hand', () => {
  const roots = [{ root: '/d/node', pods: ['u1', 'u2'].map((uid) => ({ uid, ageMs: 0 })) }]
  assert.deepEqual(found({ roots }, ['u1']), [['warn', 'pod directories', 'findmnt -R /d/node/pods/u2']])
  assert.deepEqual(found({ roots }), [])
})

test('a loop device of a deleted file, or without a mount and a driver, is let go', () => {
  const loop = { device: '/dev/loop3', file: '/d/volumes/volumes/v/image' }
  assert.deepEqual(found({ loops: [{ ...loop, deleted: true }] }, []), [
    ['problem', 'loop devices', 'losetup -d /dev/loop3'],
  ])
  assert.deepEqual(
    found(
      {
        loops: [{ ...loop, deleted: false }],
        held: [{ ...held, marks: [{ at: '/d/x', file: '/d/volumes/volumes/v/stages/1' }] }],
      },
      [],
    ),
    [],
  )
  assert.deepEqual(found({ loops: [{ ...loop, deleted: false }], held: [held] }, []), [
    ['warn', 'loop devices', 'losetup -d /dev/loop3'],
  ])
  assert.deepEqual(found({ loops: [{ ...loop, deleted: false }], holder: undefined }), [
    ['warn', 'loop devices', 'losetup -d /dev/loop3'],
  ])
})

test('an image that no object names is told with the call that deletes it; a young or inline one is not', () => {
  const sockets = ['/d/node/plugins/local.hawser.dev/csi.sock']
  const call = `hawser driver rpc ${sockets[0]} Controller/DeleteVolume '{"volumeId": "v"}'`
  const fix = `${call} (deletes the data; the driver refuses while it is in use)`
  assert.deepEqual(judged({ held: [held], sockets }, []), [['problem', 'volumes', fix]])
  assert.deepEqual(judged({ held: [held], sockets }, ['v']), [])
  assert.deepEqual(judged({ held: [{ ...held, ageMs: 1000 }] }, []), [])
  assert.deepEqual(judged({ held: [{ ...held, inline: true }] }, []), [])
  assert.deepEqual(judged({ held: [{ ...held, hasRecord: false }] }, []), [
    ['warn', 'volumes', 'ls -l /d/volumes/volumes/v'],
  ])
  assert.deepEqual(found({ held: [held] }), [], 'without a server nobody knows')
})

test('a record of a stage that is none, and a staging directory without a volume, are told', () => {
  const path = '/d/node/plugins/kubernetes.io/csi/local.hawser.dev/h'
  const marks = [{ at: `${path}/globalmount`, file: '/d/volumes/volumes/v/stages/1' }]
  assert.deepEqual(judged({ held: [{ ...held, marks }] }, ['v']), [
    ['warn', 'stage records', 'restart hawser up: its driver removes such records'],
  ])
  const staging = [{ path, driver: 'local.hawser.dev', handle: 'v', ageMs: 3_600_000 }]
  assert.deepEqual(judged({ staging }, ['v']), [])
  assert.deepEqual(judged({ staging }, []), [
    ['warn', 'staging directories', `rmdir ${path}/globalmount; rm ${path}/vol_data.json; rmdir ${path}`],
  ])
  assert.deepEqual(judged({ staging, mounts: [mount(`${path}/globalmount`)] }, []), [
    ['problem', 'staging directories', `umount ${path}/globalmount`],
  ])
})

test('secrets that others can read are a problem', () => {
  assert.deepEqual(found({ open: ['/d/ca.key'] }, []), [['problem', 'secrets', 'chmod 600 /d/ca.key']])
})

test('the pod of a path', () => {
  assert.equal(podOf(podMount), 'u1')
  assert.equal(podOf('/d/node/pods/u2/volumeDevices/x'), 'u2')
  assert.equal(podOf('/d/node/plugins/kubernetes.io/csi/x/globalmount'), undefined)
})

test('the doctor asks the server of its directory, whatever cluster $KUBECONFIG is of', () => {
  const own = '/var/lib/hawser/kubeconfig'
  const facts = { own, directoryNamed: false, ownExists: true, hasHawserVariable: false }
  assert.equal(doctorKubeconfig(facts), own)
  assert.equal(doctorKubeconfig({ ...facts, named: '/a' }), '/a')
  assert.equal(doctorKubeconfig({ ...facts, hasHawserVariable: true }), undefined)
  assert.equal(doctorKubeconfig({ ...facts, hasHawserVariable: true, directoryNamed: true }), own)
  assert.equal(doctorKubeconfig({ ...facts, ownExists: false }), undefined)
})
