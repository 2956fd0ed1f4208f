// Does `why` name the cause when the machine itself is at fault? A full disk, a root that cannot be written, a busy mount, devices
// with the wrong content, storage out of reach, programs that are missing: all real, on a real agent. Needs root.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { PersistentVolume, Pod, Volume } from '../../src/api/generated/types.ts'
import { untilWhy } from '../kit/assert-why.ts'
import type { AgentFixture } from '../kit/agent-fixture.ts'
import { createDisk, openAgentFixture, podOn, until } from '../kit/agent-fixture.ts'
import { needsRoot as skip, pathWithout } from '../kit/machine.ts'

let bench: AgentFixture
let tools: string
before(async () => {
  if (skip) return
  bench = await openAgentFixture({ env: { PATH: `/tmp/hawser-no-tools-yet:${process.env['PATH'] ?? ''}` } })
  tools = join(bench.base, 'tools')
  mkdirSync(tools)
  // The node's root is a filesystem of its own, so that it can be full or read-only without hurting anybody else.
  mkdirSync(bench.root)
  run('mount', '-t', 'tmpfs', '-o', 'size=2m,mode=0755', 'tmpfs', bench.root)
  const machine = pathWithout('iscsiadm', join(bench.base, 'programs'))
  await bench.startAgent({ PATH: `${tools}:${machine}` })
})
after(async () => {
  await bench?.endAgent('SIGTERM')
  await bench?.[Symbol.asyncDispose]()
})

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  assert.equal(status, 0, `${program} ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

const volumePod = (name: string, volume: Omit<Volume, 'name'>): Pod =>
  podOn(name, {
    containers: [
      { name: 'c', image: 'i', command: ['sleep', '3600'], volumeMounts: [{ name: 'v', mountPath: '/volumes/v' }] },
    ],
    volumes: [{ name: 'v', ...volume }],
  })
const runs = (name: string) => until(`${name} runs`, async () => (await bench.phaseOf(name)) === 'Running')
async function gone(...names: string[]): Promise<void> {
  await Promise.all(names.map(bench.remove))
  await bench.allGone()
}

test('a full disk: no space, until there is some', { skip }, async () => {
  await bench.client.create('ConfigMap', { metadata: { name: 'words', namespace: 'default' }, data: { a: 'b' } })
  const filler = join(bench.root, 'filler')
  spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4k'])
  await bench.client.create('Pod', volumePod('full', { configMap: { name: 'words' } }))
  const { blocked } = await untilWhy(bench.client, 'pod/full', 'noSpaceOnNode')
  assert.match(blocked?.sentence ?? '', /no space left on node n1 for volume v: /)
  assert.equal(blocked?.error?.code, 'ENOSPC')
  assert.ok(blocked?.nextTry, 'the next try is named')
  rmSync(filler)
  await runs('full')
  await gone('full')
})

test('a root that cannot be written: read-only, until it is writable again', { skip }, async () => {
  run('mount', '-o', 'remount,ro', bench.root)
  try {
    await bench.client.create('Pod', volumePod('stuck', { emptyDir: {} }))
    const { blocked } = await untilWhy(bench.client, 'pod/stuck', 'readOnlyStorage')
    assert.equal(blocked?.error?.code, 'EROFS')
  } finally {
    run('mount', '-o', 'remount,rw', bench.root)
  }
  await runs('stuck')
  await gone('stuck')
})

test('a program works in the volume of a pod that goes: busy, until it leaves', { skip }, async () => {
  const made = await bench.client.create('Pod', volumePod('held', { emptyDir: { medium: 'Memory' } }))
  await runs('held')
  const path = join(bench.root, `pods/${made.metadata.uid}/volumes/kubernetes.io~empty-dir/v`)
  const holder = spawn('sleep', ['600'], { cwd: path })
  try {
    await bench.remove('held')
    const { blocked } = await untilWhy(bench.client, 'pod/held', 'deviceBusy')
    assert.equal(blocked?.step.name, 'its volumes are unmounted')
    await untilWhy(bench.client, 'node/n1', 'deviceBusy')
  } finally {
    holder.kill()
    await once(holder, 'exit')
  }
  await bench.allGone()
})

/** A local volume over a loop device, bound to a claim of its name. */
async function diskOf(name: string, format: string | undefined, fsType: string): Promise<void> {
  const image = join(bench.base, `${name}.img`)
  writeFileSync(image, '')
  truncateSync(image, 16 << 20)
  if (format) run(`mkfs.${format}`, '-q', '-F', image)
  await bound(name, { local: { path: run('losetup', '-f', '--show', image), fsType } })
}

async function bound(name: string, source: Partial<PersistentVolume['spec']>): Promise<void> {
  const common = { accessModes: ['ReadWriteOnce' as const], storageClassName: '' }
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['n1'] }
  await bench.client.create('PersistentVolume', {
    metadata: { name },
    spec: {
      ...common,
      ...source,
      capacity: { storage: '16Mi' },
      persistentVolumeReclaimPolicy: 'Retain',
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
    },
  })
  await bench.client.create('PersistentVolumeClaim', {
    metadata: { name, namespace: 'default' },
    spec: { ...common, volumeName: name, resources: { requests: { storage: '16Mi' } } },
  })
}
const claimed = (name: string, more: { readonly readOnly?: boolean } = {}): Pod =>
  volumePod(name, { persistentVolumeClaim: { claimName: name, ...more } })

test('a device that holds another filesystem, and a blank one that may only be read', { skip }, async () => {
  await diskOf('other', 'ext4', 'xfs')
  await diskOf('blank', undefined, 'ext4')
  await bench.client.create('Pod', claimed('other'))
  await bench.client.create('Pod', claimed('blank', { readOnly: true }))
  const { blocked } = await untilWhy(bench.client, 'pod/other', 'wrongFilesystem')
  assert.match(blocked?.sentence ?? '', /volume other .*The disk holds ext4, not xfs/)
  await untilWhy(bench.client, 'pod/blank', 'unformattedReadOnly')
  await gone('other', 'blank')
})

test('a device is used by two volumes, and the second would format it', { skip }, async () => {
  const device = await createDisk(bench, 'first', 'Filesystem')
  await bench.client.create('Pod', claimed('first'))
  await runs('first')
  await bound('second', { local: { path: device, fsType: 'xfs' } })
  await bench.client.create('Pod', claimed('second'))
  await untilWhy(bench.client, 'pod/second', 'wrongFilesystem')
  await gone('first', 'second')
})

test('iSCSI: no iscsiadm, then a portal that is not there', { skip }, async () => {
  await bound('remote', { iscsi: { targetPortal: '127.0.0.1:1', iqn: 'iqn.2026-01.dev.hawser:none', lun: 0 } })
  await bench.client.create('Pod', claimed('remote'))
  await untilWhy(bench.client, 'pod/remote', 'programMissing')
  const script =
    '#!/bin/sh\ncase "$*" in *sendtargets*) echo "cannot make connection to 127.0.0.1" >&2; exit 4;; esac\n'
  writeFileSync(join(tools, 'iscsiadm'), script, { mode: 0o755 })
  const { blocked } = await untilWhy(bench.client, 'pod/remote', 'storageUnreachable', 60)
  assert.match(blocked?.sentence ?? '', /cannot log in to the storage of volume remote.*cannot make connection/)
  await gone('remote')
})

test('NFS: a server that refuses is told in the words of mount.nfs', { skip }, async () => {
  const script =
    '#!/bin/sh\ncase "$*" in *"-t nfs"*) echo "mount.nfs: Connection refused" >&2; exit 32;; esac\nexec /usr/bin/mount "$@"\n'
  writeFileSync(join(tools, 'mount'), script, { mode: 0o755 })
  writeFileSync(join(tools, 'mount.nfs'), '#!/bin/sh\n', { mode: 0o755 })
  await bench.client.create('Pod', volumePod('shared', { nfs: { server: '127.0.0.1', path: '/export' } }))
  const { blocked } = await untilWhy(bench.client, 'pod/shared', 'mountFailed')
  assert.match(blocked?.error?.message ?? '', /mount\.nfs: Connection refused/)
  await gone('shared')
})
