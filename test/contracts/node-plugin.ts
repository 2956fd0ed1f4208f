// Does a plugin keep a node's promises? Idempotent, clean after itself, and safe at every step: whatever call to the host
// fails, before or after taking effect, a retry succeeds and unmounting leaves nothing (PLUG-7, PLUG-19 … PLUG-22).

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { podUid } from '../../src/api/names.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import type { NodePlugin } from '../../src/volume/plugin.ts'
import type { PluginCase } from '../kit/plugin-cases.ts'
import type { Mounting, PluginFixture } from '../kit/plugin-fixture.ts'
import { createPluginFixture, inTime, mounting, mountPoints, picture, signal } from '../kit/plugin-fixture.ts'

const root = '/var/lib/kubelet'

interface World {
  readonly host: ModelHost
  readonly bench: PluginFixture
  /** What lay on disk before any mount. */
  readonly before: readonly string[]
  fresh(): Mounting
}

export function nodePluginContract(given: PluginCase): void {
  describe(`node plugin contract: ${given.name}`, () => {
    const world = async (): Promise<World> => {
      const host = createModelHost({ clock: createVirtualClock() })
      for (const path of [root, `${root}/pods/uid-1/volumes`, `${root}/pods/uid-1/plugins`, `${root}/plugins`])
        await host.files.mkdirAll(path, 0o750, signal)
      const bench = await createPluginFixture(host, root, given.deps ?? {})
      await given.prepare?.(host, bench.client)
      const ownership = given.fsGroup === undefined ? {} : { fsGroup: given.fsGroup }
      return { host, bench, before: await leftovers(host), fresh: () => mounting(bench, given.spec, { ownership }) }
    }

    test('mounting twice is mounting once; unmounting twice is unmounting once', async () => {
      const { host, bench, before, fresh } = await world()
      await mount(fresh())
      const once = await picture(host, root)
      await mount(fresh())
      assert.deepEqual(await picture(host, root), once)
      await unmount(fresh())
      await unmount(fresh())
      assert.deepEqual(await leftovers(host), before)
      await bench.close()
    })

    test('a spec restored from disk is enough to unmount', async () => {
      const { host, bench, before, fresh } = await world()
      const first = fresh()
      await mount(first)
      const again = fresh()
      const { target } = again.request
      const restored = await again.plugin.plugin.restore?.(
        { volumeName: given.spec.name, pod: podUid('uid-1'), path: target, mode: 'Filesystem' },
        signal,
      )
      assert.equal(restored?.source.kind, given.spec.source.kind)
      assert.equal(restored?.name, given.spec.name)
      await unmount(again)
      assert.deepEqual(await leftovers(host), before)
      await bench.close()
    })

    for (const kind of ['fails', 'failsAfter'] as const) {
      test(`whatever call of a mount ${kind}, a retry succeeds and nothing is left in the end`, async () => {
        await atEveryCall(world, kind, mount, async ({ host, before, fresh }) => {
          await mount(fresh())
          await unmount(fresh())
          assert.deepEqual(await leftovers(host), before)
        })
      })

      test(`whatever call of a mount ${kind}, unmounting right after it leaves nothing (PLUG-21)`, async () => {
        await atEveryCall(world, kind, mount, async ({ host, before, fresh }) => {
          await unmount(fresh())
          assert.deepEqual(await leftovers(host), before)
        })
      })

      test(`whatever call of an unmount ${kind}, a retry leaves nothing`, async () => {
        const mounted = async (): Promise<World> => {
          const made = await world()
          await mount(made.fresh())
          return made
        }
        await atEveryCall(mounted, kind, unmount, async ({ host, before, fresh }) => {
          await unmount(fresh())
          assert.deepEqual(await leftovers(host), before)
        })
      })
    }
  })
}

/** Strikes the first call, then the second, … until the work needs no more calls than that. */
async function atEveryCall(
  make: () => Promise<World>,
  kind: 'fails' | 'failsAfter',
  work: (mounting: Mounting) => Promise<void>,
  then: (world: World) => Promise<void>,
): Promise<void> {
  for (let after = 0; ; after += 1) {
    assert.ok(after < 200, 'the work does not end')
    const world = await make()
    world.host.faults.plant({ call: '*', kind, code: 'EIO', after, times: 1 })
    await inTime(world.bench.clock, work(world.fresh())).catch(() => undefined)
    const { struck } = world.host.faults
    world.host.faults.clear()
    await then(world)
    await world.bench.close()
    if (struck === 0) return
  }
}

async function mount({ plugin: { plugin }, request }: Mounting): Promise<void> {
  const device = plugin.device?.(request.spec)
  const { spec, pod } = request
  await plugin.prepare?.(spec, signal)
  if (device !== undefined) {
    const devicePath = (await device.waitForAttach?.({ spec, devicePath: '', pod }, signal)) ?? ''
    await device.mount({ spec, pod, devicePath, path: device.path(spec) }, signal)
  }
  await plugin.mount(request, signal)
}

async function unmount({ plugin: { plugin }, request }: Mounting): Promise<void> {
  const { spec, target } = request
  await plugin.unmount({ volumeName: spec.name, pod: podUid('uid-1'), target }, signal)
  const device = (plugin as NodePlugin).device?.(spec)
  if (device !== undefined) await device.unmount({ path: device.path(spec) }, signal)
}

/** Mounts and files below the root; empty directories of the layout may stay (the node removes them with the pod). */
async function leftovers(host: ModelHost): Promise<string[]> {
  const layout =
    /^(pods|plugins)(\/[^/]+){0,3} d |^plugins(\/[^/]+){1,4} d |^plugins\/kubernetes\.io\/iscsi\/iface-[^/]+ d /
  const files = (await picture(host, root)).filter((line) => !layout.test(line))
  return [...(await mountPoints(host, root)), ...files]
}
