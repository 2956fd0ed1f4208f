// A disk behind a network, played by a loop device: what the tests of iscsi and fc on a real machine have in common.

import assert from 'node:assert/strict'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { podUid } from '../../src/api/names.ts'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import type { NodePlugin } from '../../src/volume/plugin.ts'
import type { VolumeSpec } from '../../src/volume/spec.ts'
import { createPluginFixture, mountPoints, pod, signal } from '../kit/plugin-fixture.ts'
import { openPlace } from '../kit/scratch-host.ts'

/** Stand-ins live in `tools`: programs, and the trees `sys` and `dev`. */
export async function withLoopDisk(work: (tools: string, disk: string) => Promise<void>): Promise<void> {
  const tools = fs.mkdtempSync(join(tmpdir(), 'hawser-tools-'))
  const file = join(tools, 'disk')
  await using maker = openPlace()
  await maker.makeDiskFile(file, 16 << 20)
  const disk = await maker.host.devices.attachLoop({ file, readOnly: false }, signal)
  try {
    await work(tools, disk)
  } finally {
    await maker.host.devices.detachLoop(disk, signal)
    fs.rmSync(tools, { recursive: true })
  }
}

export interface DiskLife {
  readonly tools: string
  readonly searchPath?: string
  /** `kubernetes.io~iscsi` */
  readonly folder: string
  readonly spec: VolumeSpec
  create(deps: ReturnType<typeof diskDeps>): NodePlugin
  /** After the device was found, before it is mounted. */
  found?(devicePath: string): void
}

/** From the wait for the device to the last unmount; answers what a restarted node would have made of the mounted volume. */
export async function liveThrough(life: DiskLife): Promise<VolumeSpec | undefined> {
  const { tools, folder, spec, create } = life
  await using place = openPlace(life.searchPath === undefined ? {} : { searchPath: life.searchPath })
  const root = join(place.root, 'kubelet')
  const bench = await createPluginFixture(place.host, root)
  const deps = diskDeps(bench, tools)
  const plugin = create(deps)
  const device = plugin.device?.(spec)
  assert.ok(device)
  const path = device.path(spec)
  const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod: pod() }, signal)) ?? ''
  life.found?.(devicePath)
  await device.mount({ spec, pod: pod(), devicePath, path }, signal)
  const target = join(root, 'pods/uid-1/volumes', folder, 'pv')
  const request = {
    spec,
    pod: pod(),
    target,
    deviceMountPath: path,
    ownership: { fsGroup: 2000 },
    foundOnDisk: false,
    remount: false,
    notify: () => undefined,
  }
  await plugin.mount(request, signal)
  fs.writeFileSync(join(target, 'f'), 'x')
  assert.equal(fs.statSync(target).gid, 2000)
  const found = { volumeName: 'pv', pod: podUid('uid-1'), path: target, mode: 'Filesystem' as const }
  const restored = await create(deps).restore?.(found, signal)
  await plugin.unmount({ volumeName: 'pv', pod: podUid('uid-1'), target }, signal)
  await device.unmount({ path }, signal)
  assert.deepEqual(await mountPoints(place.host, root), [])
  assert.equal(fs.existsSync(path), false)
  await bench.close()
  return restored
}

function diskDeps(bench: Awaited<ReturnType<typeof createPluginFixture>>, tools: string) {
  const deviceTree = { sys: join(tools, 'sys'), dev: join(tools, 'dev') }
  return { ...bench.deps, clock: createSystemClock(), deviceTree }
}
