// What must every driver written with our kit do? The life of a volume over its typed calls: the model driver and the
// built-in one take the same test, so what the simulator trusts is what ships.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../src/clock/clock.ts'
import { CsiError } from '../../src/csi/codes.ts'
import type { StatusName } from '../../src/csi/codes.ts'
import { openDriver } from '../../src/csi/drivers.ts'
import type { Connect, Driver } from '../../src/csi/drivers.ts'
import type { Capability } from '../../src/csi/values.ts'

export interface DriverUnderTest extends AsyncDisposable {
  readonly connect: Connect
  readonly endpoint: string
  readonly clock: Clock
  readonly nodeId: string
  /** A directory on the driver's host under which the test may stage and publish. */
  readonly directory: string
  makeDirectory(path: string): Promise<void>
  isMounted(path: string): Promise<boolean>
}

const signal = new AbortController().signal
const mount: Capability = { mode: 'SINGLE_NODE_WRITER', access: { kind: 'mount', fsType: 'ext4', mountFlags: [] } }
const size = 1n << 24n

const withStatus = (status: StatusName) => (error: unknown) => error instanceof CsiError && error.status === status

export function csiDriverContract(
  label: string,
  make: () => Promise<DriverUnderTest>,
  options: { readonly skip?: string } = {},
): void {
  const check = (name: string, body: (driver: Driver, under: DriverUnderTest) => Promise<void>) =>
    test(
      `csi driver contract: ${label}: ${name}`,
      { ...(options.skip !== undefined && { skip: options.skip }), timeout: 60_000 },
      async () => {
        await using under = await make()
        using driver = openDriver({ name: label, endpoint: under.endpoint, connect: under.connect, clock: under.clock })
        await body(driver, under)
      },
    )

  void check('it is ready and says what it can do (SIDE-1, SIDE-60)', async (driver, { nodeId }) => {
    await driver.identity.waitReady(signal)
    assert.ok((await driver.pluginCapabilities(signal)).has('CONTROLLER_SERVICE'))
    assert.ok((await driver.controllerCapabilities(signal)).has('CREATE_DELETE_VOLUME'))
    assert.ok((await driver.nodeCapabilities(signal)).has('STAGE_UNSTAGE_VOLUME'))
    assert.equal((await driver.node.info(signal)).nodeId, nodeId)
  })

  void check('every call of a life may be repeated, and nothing is left (SIDE-61 … SIDE-64)', async (driver, under) => {
    const controller = driver.controller(30_000)
    const twice = async <T>(call: () => Promise<T>) => (await call(), call())
    const { volumeId } = await twice(() =>
      controller.createVolume({ name: 'life', requiredBytes: size, capabilities: [mount] }, signal),
    )
    const attaches = (await driver.controllerCapabilities(signal)).has('PUBLISH_UNPUBLISH_VOLUME')
    const attach = () =>
      controller.attach({ volumeId, nodeId: under.nodeId, capability: mount, readOnly: false }, signal)
    const publishContext = attaches ? await twice(attach) : {}
    const [staging, target] = [`${under.directory}/stage`, `${under.directory}/target`]
    await under.makeDirectory(staging)
    await twice(() => driver.node.stage({ volumeId, stagingPath: staging, capability: mount, publishContext }, signal))
    await twice(() =>
      driver.node.publish(
        { volumeId, stagingPath: staging, targetPath: target, capability: mount, readOnly: false, publishContext },
        signal,
      ),
    )
    assert.ok(await under.isMounted(target))
    const grown = await twice(() => controller.expand({ volumeId, sizeBytes: size * 2n, capability: mount }, signal))
    assert.equal(grown.capacityBytes, size * 2n)
    const usage = await driver.node.stats(volumeId, target, signal)
    assert.ok((usage.capacityBytes ?? 0n) > 0n)
    await twice(() => driver.node.unpublish(volumeId, target, signal))
    await twice(() => driver.node.unstage(volumeId, staging, signal))
    assert.equal(await under.isMounted(staging), false)
    if (attaches) await twice(() => controller.detach({ volumeId, nodeId: under.nodeId }, signal))
    await twice(() => controller.deleteVolume(volumeId, {}, signal))
    assert.deepEqual(await controller.listVolumes(signal), [])
  })

  void check('a name means one volume: another size under it is refused (WIRE-3)', async (driver) => {
    const controller = driver.controller(30_000)
    const request = { name: 'same', requiredBytes: size, capabilities: [mount] }
    const first = await controller.createVolume(request, signal)
    assert.deepEqual(await controller.createVolume(request, signal), first)
    await assert.rejects(
      controller.createVolume({ ...request, requiredBytes: size * 2n }, signal),
      withStatus('ALREADY_EXISTS'),
    )
    await controller.deleteVolume(first.volumeId, {}, signal)
  })

  void check('what does not exist is NOT_FOUND, and deleting it succeeds (WIRE-3)', async (driver, under) => {
    const controller = driver.controller(30_000)
    await controller.deleteVolume('vol-nothing', {}, signal)
    await controller.deleteSnapshot('snap-nothing', {}, signal)
    await assert.rejects(controller.getVolume('vol-nothing', signal), withStatus('NOT_FOUND'))
    await assert.rejects(
      controller.expand({ volumeId: 'vol-nothing', sizeBytes: size }, signal),
      withStatus('NOT_FOUND'),
    )
    await assert.rejects(
      driver.node.stage({ volumeId: 'vol-nothing', stagingPath: `${under.directory}/x`, capability: mount }, signal),
      withStatus('NOT_FOUND'),
    )
    const source = { kind: 'snapshot' as const, snapshotId: 'snap-nothing' }
    await assert.rejects(
      controller.createVolume({ name: 'from nothing', requiredBytes: size, capabilities: [mount], source }, signal),
      withStatus('NOT_FOUND'),
    )
  })

  void check('a publish without a stage is refused (WIRE-3)', async (driver, under) => {
    const controller = driver.controller(30_000)
    const { volumeId } = await controller.createVolume(
      { name: 'early', requiredBytes: size, capabilities: [mount] },
      signal,
    )
    const request = {
      volumeId,
      stagingPath: `${under.directory}/none`,
      targetPath: `${under.directory}/t`,
      capability: mount,
      readOnly: false,
    }
    await assert.rejects(driver.node.publish(request, signal), withStatus('FAILED_PRECONDITION'))
    await controller.deleteVolume(volumeId, {}, signal)
  })

  void check('snapshots and clones: made once, restored, listed, deleted (SIDE-46)', async (driver) => {
    const controller = driver.controller(30_000)
    const origin = await controller.createVolume({ name: 'origin', requiredBytes: size, capabilities: [mount] }, signal)
    const snapshot = await controller.createSnapshot({ name: 's', sourceVolumeId: origin.volumeId }, signal)
    assert.deepEqual(await controller.createSnapshot({ name: 's', sourceVolumeId: origin.volumeId }, signal), snapshot)
    assert.deepEqual(await controller.findSnapshot(snapshot.snapshotId, {}, signal), snapshot)
    const sources = [
      { kind: 'snapshot' as const, snapshotId: snapshot.snapshotId },
      { kind: 'volume' as const, volumeId: origin.volumeId },
    ]
    for (const [index, source] of sources.entries()) {
      const copy = await controller.createVolume(
        { name: `copy ${index}`, requiredBytes: size * 2n, capabilities: [mount], source },
        signal,
      )
      assert.deepEqual(copy.source, source)
      await controller.deleteVolume(copy.volumeId, {}, signal)
    }
    await controller.deleteSnapshot(snapshot.snapshotId, {}, signal)
    assert.equal(await controller.findSnapshot(snapshot.snapshotId, {}, signal), undefined)
    await controller.deleteVolume(origin.volumeId, {}, signal)
  })
}
