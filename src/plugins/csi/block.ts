// How does a raw CSI device reach a pod? Staged once per node, published to a file per pod, cleaned up behind the
// last one (CSI-50 … CSI-54). The node agent binds and links what is published here.
import { join } from 'node:path/posix'
import type { BlockMapper, MapRequest } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { names } from '../disk/multipath.ts'
import { preparing } from '../shared/errors.ts'
import { podInformation } from './context.ts'
import { checkGone, checkMapped } from './effects.ts'
import { findDriver, persistent } from './mount.ts'
import { failedFor, hasData, loadDataOr, notAskedFor, saveData } from './saved-data.ts'
import {
  attachmentOf,
  blockPaths,
  capabilityOf,
  podIdentity,
  publishContext,
  readSecret,
  waitForAttachment,
} from './source.ts'
import type { CsiNodeDeps } from './source.ts'

const operationMs = 120_000

export function createBlockMapper(deps: CsiNodeDeps): BlockMapper {
  const paths = (spec: VolumeSpec) => blockPaths(deps.root, spec.name)
  const inTime = async <T>(outer: AbortSignal, call: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    using deadline = deps.clock.deadline(operationMs, outer)
    return await call(deadline.signal)
  }
  return {
    globalMapPath: (spec) => paths(spec).map,
    stagingPath: (spec) => paths(spec).staging,
    waitForAttach: ({ spec }, signal) => waitForAttachment(deps, spec, signal),
    setUpDevice: (request, outer) => inTime(outer, (signal) => stage(deps, request, signal)),
    mapPodDevice: (request, outer) => inTime(outer, (signal) => publish(deps, request, signal)),
    mappedPods: (spec, signal) => names(deps.host.files, paths(spec).publish, signal),
    unmapPodDevice: ({ spec, pod }, outer) =>
      inTime(outer, async (signal) => {
        const source = persistent(spec)
        const driver = deps.drivers.require(source.driver)
        const target = join(paths(spec).publish, pod)
        // Always asked, even if nothing is there: a publish that timed out may still be running (CSI-53).
        await driver.node.unpublish(source.volumeHandle, target, signal)
        await checkGone(deps.host, 'NodeUnpublishVolume', target, signal)
        await deps.host.files.remove(target, signal)
      }),
    tearDownDevice: ({ spec }, outer) => inTime(outer, (signal) => unstage(deps, spec, signal)),
  }
}

/** The metadata is written before anything else, so that a restart knows the volume (CSI-50). */
async function saveBlockData(deps: CsiNodeDeps, spec: VolumeSpec, signal: AbortSignal): Promise<void> {
  const source = persistent(spec)
  const { data } = blockPaths(deps.root, spec.name)
  await deps.host.files.mkdirAll(data, 0o750, signal)
  const saved = {
    specVolID: spec.name,
    volumeHandle: source.volumeHandle,
    driverName: source.driver,
    nodeName: deps.nodeName,
    attachmentID: attachmentOf(deps, source.driver, source.volumeHandle),
  }
  await saveData(deps.host.files, data, saved, signal)
}

async function stage(deps: CsiNodeDeps, { spec }: MapRequest, signal: AbortSignal): Promise<string> {
  const source = persistent(spec)
  const { staging, data } = blockPaths(deps.root, spec.name)
  const driver = findDriver(deps, source.driver, 'blockMapper.SetUpDevice failed to get CSI client')
  const context = await publishContext(deps, spec, signal)
  const capabilities = await driver.nodeCapabilities(signal)
  const stages = capabilities.has('STAGE_UNSTAGE_VOLUME')
  // A driver that does not stage needs no secret for it (CSI-51).
  const secretRef = stages ? source.nodeStageSecretRef : undefined
  const secrets = await readSecret(deps.client, secretRef, 'NodeStageSecretRef', signal)
  const known = await preparing(() => hasData(deps.host.files, data, signal))
  await preparing(async () => {
    await saveBlockData(deps, spec, signal)
    if (stages) await deps.host.files.mkdirAll(staging, 0o750, signal)
  }).catch((error: unknown) =>
    notAskedFor(
      error,
      async () => known,
      () => cleanUp(deps, spec, signal),
    ),
  )
  if (!stages) return ''
  const request = {
    volumeId: source.volumeHandle,
    stagingPath: staging,
    capability: capabilityOf(spec, capabilities, undefined),
    publishContext: context,
    volumeContext: source.volumeAttributes ?? {},
    secrets,
  }
  await driver.node
    .stage(request, signal)
    .catch((error: unknown) => failedFor(error, () => cleanUp(deps, spec, signal)))
  return staging
}

async function publish(deps: CsiNodeDeps, { spec, pod }: MapRequest, signal: AbortSignal): Promise<string> {
  const source = persistent(spec)
  const paths = blockPaths(deps.root, spec.name)
  const driver = findDriver(deps, source.driver, 'blockMapper.MapPodDevice failed to get CSI client')
  const context = await publishContext(deps, spec, signal)
  const capabilities = await driver.nodeCapabilities(signal)
  const secrets = await readSecret(deps.client, source.nodePublishSecretRef, 'NodePublishSecretRef', signal)
  const wantsPod = deps.csiDrivers.get(source.driver)?.spec?.podInfoOnMount === true
  await preparing(() => deps.host.files.mkdirAll(paths.publish, 0o750, signal))
  const target = join(paths.publish, podIdentity(pod).uid)
  const request = {
    volumeId: source.volumeHandle,
    targetPath: target,
    // Only for drivers that stage: upstream sends it to all (WART-10).
    stagingPath: capabilities.has('STAGE_UNSTAGE_VOLUME') ? paths.staging : '',
    capability: capabilityOf(spec, capabilities, undefined),
    readOnly: spec.readOnly,
    publishContext: context,
    volumeContext: { ...source.volumeAttributes, ...(wantsPod ? podInformation(pod, false) : {}) },
    secrets,
  }
  await driver.node
    .publish(request, signal)
    .catch((error: unknown) => failedFor(error, () => requireNothingAt(deps, target, signal)))
  await checkMapped(deps.host, target, signal)
  return target
}

/** The file is the driver's: where one is, only an unpublish takes it away. */
async function requireNothingAt({ host }: CsiNodeDeps, target: string, signal: AbortSignal): Promise<void> {
  if (await host.files.exists(target, signal)) throw new Error(`there is something at ${target}`)
}

async function unstage(deps: CsiNodeDeps, spec: VolumeSpec, signal: AbortSignal): Promise<void> {
  const { files } = deps.host
  const paths = blockPaths(deps.root, spec.name)
  const known = { driverName: persistent(spec).driver, volumeHandle: persistent(spec).volumeHandle }
  const source = (await loadDataOr(files, paths.data, known, signal)) ?? known
  if (await files.exists(paths.staging, signal)) {
    const driver = deps.drivers.require(source.driverName)
    if ((await driver.nodeCapabilities(signal)).has('STAGE_UNSTAGE_VOLUME')) {
      await driver.node.unstage(source.volumeHandle, paths.staging, signal)
    }
    await files.removeTree(paths.staging, signal)
  }
  await cleanUp(deps, spec, signal)
}

/** A mount in any of these directories stops the removal; nothing mounted is ever deleted (CSI-54). */
async function cleanUp({ host, root }: CsiNodeDeps, spec: VolumeSpec, signal: AbortSignal): Promise<void> {
  const paths = blockPaths(root, spec.name)
  await host.files.remove(paths.publish, signal)
  await host.files.remove(paths.staging, signal)
  await host.files.removeTree(paths.own, signal)
}
