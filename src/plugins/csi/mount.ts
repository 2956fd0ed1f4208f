// How does a CSI filesystem reach a pod? Stage once per node, publish once per pod; a failed call keeps or removes what
// is on disk by what it may have left behind (CSI-30 … CSI-43).
import { dirname, join } from 'node:path/posix'
import { annotations } from '../../api/annotations.ts'
import type { CSIDriver } from '../../api/generated/types.ts'
import type { Driver } from '../../csi/drivers.ts'
import type { NodeCapabilityName } from '../../csi/values.ts'
import { applyOwnership } from '../../host/ownership.ts'
import { asVolumeError, hasTag, VolumeError } from '../../volume/effect.ts'
import type { DeviceMounter, DeviceMountRequest, MountRequest, NodePlugin } from '../../volume/plugin.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { preparing } from '../shared/errors.ts'
import { podInformation, serviceAccountTokens } from './context.ts'
import { checkGone, checkPublished } from './effects.ts'
import {
  failedFor,
  hasData,
  isMounted,
  loadDataOr,
  notAskedFor,
  removeMountDirectory,
  requireData,
  saveData,
} from './saved-data.ts'
import type { SavedData } from './saved-data.ts'
import {
  attachmentOf,
  capabilityOf,
  handleOf,
  podIdentity,
  publishContext,
  readSecret,
  sourceOf,
  stagingPath,
  waitForAttachment,
} from './source.ts'
import type { CsiNodeDeps } from './source.ts'

export const mountPathOf = (target: string) => join(target, 'mount')

/** The whole of one stage, unstage, publish or unpublish (CSI-14). */
const operationMs = 120_000

export function createDeviceMounter(deps: CsiNodeDeps): DeviceMounter {
  const { clock, drivers, host } = deps
  return {
    path: (spec) => stagingPath(deps.root, persistent(spec)),
    waitForAttach: ({ spec }, signal) => waitForAttachment(deps, spec, signal),
    async mount(request, outer) {
      using deadline = clock.deadline(operationMs, outer)
      await stage(deps, request, deadline.signal, outer)
    },
    async unmount({ path, spec }, outer) {
      using deadline = clock.deadline(operationMs, outer)
      const { signal } = deadline
      const known = spec && knownData(spec, persistent(spec).volumeHandle)
      const saved = await loadDataOr(host.files, dirname(path), known, signal)
      // No file means that nothing was staged. If something is mounted there all the same, it must not count as gone.
      if (!saved && !(await isMounted(host.mounts, path, signal))) return removeMountDirectory(host, path, signal)
      const data = saved ?? known ?? (await requireData(host.files, dirname(path), signal))
      const driver = drivers.require(data.driverName)
      if ((await driver.nodeCapabilities(signal)).has('STAGE_UNSTAGE_VOLUME')) {
        await driver.node.unstage(data.volumeHandle, path, signal)
        await checkGone(host, 'NodeUnstageVolume', path, signal)
      }
      await removeMountDirectory(host, path, signal)
    },
  }
}

async function stage(
  deps: CsiNodeDeps,
  { spec, path, fsGroup, seLinuxLabel }: DeviceMountRequest,
  signal: AbortSignal,
  outer: AbortSignal,
): Promise<void> {
  const { host } = deps
  const source = persistent(spec)
  const driver = findDriver(deps, source.driver, 'attacher.MountDevice failed to create newCsiDriverClient')
  const capabilities = await driver.nodeCapabilities(signal)
  // A driver without staging needs no directory either; upstream leaks one here (WART-5, TP-37).
  if (!capabilities.has('STAGE_UNSTAGE_VOLUME')) return
  const context = await publishContext(deps, spec, signal)
  const secrets = await readSecret(deps.client, source.nodeStageSecretRef, 'NodeStageSecretRef', signal)
  const data = { driverName: source.driver, volumeHandle: source.volumeHandle, ...contextData(seLinuxLabel) }
  await preparing(async () => {
    await host.files.mkdirAll(path, 0o750, signal)
    await saveData(host.files, dirname(path), data, signal)
  }).catch((error: unknown) =>
    notAskedFor(
      error,
      () => hasData(host.files, dirname(path), outer),
      () => removeMountDirectory(host, path, outer),
    ),
  )
  const request = {
    volumeId: source.volumeHandle,
    stagingPath: path,
    capability: capabilityOf(spec, capabilities, fsGroup, seLinuxLabel),
    publishContext: context,
    volumeContext: source.volumeAttributes ?? {},
    secrets,
  }
  // Final: nothing is there. Uncertain: directory and metadata stay for the unstage that must follow (CSI-32).
  await driver.node
    .stage(request, signal)
    .catch((error: unknown) => failedFor(error, () => removeMountDirectory(host, path, outer)))
}

export function createPublisher(deps: CsiNodeDeps): Pick<NodePlugin, 'mount' | 'unmount'> {
  const { clock, drivers, host } = deps
  return {
    async mount(request, outer) {
      using deadline = clock.deadline(operationMs, outer)
      await publish(deps, request, deadline.signal)
    },
    async unmount({ target, spec, pod }, outer) {
      using deadline = clock.deadline(operationMs, outer)
      const { signal } = deadline
      const path = mountPathOf(target)
      const known = spec && knownData(spec, handleOf(spec, pod))
      const saved = await loadDataOr(host.files, target, known, signal)
      const data = saved ?? known ?? (await requireData(host.files, target, signal))
      const driver = drivers.require(data.driverName)
      await driver.node.unpublish(data.volumeHandle, path, signal)
      await checkGone(host, 'NodeUnpublishVolume', path, signal)
      await removeMountDirectory(host, path, signal)
    },
  }
}

/** The order of these steps decides which failures leave nothing behind (CSI-33). */
async function publish(deps: CsiNodeDeps, request: MountRequest, signal: AbortSignal): Promise<void> {
  const { spec, pod, target, ownership, seLinuxLabel } = request
  const { files } = deps.host
  const source = sourceOf(spec)
  const driverObject = deps.csiDrivers.get(source.value.driver)
  const driver = findDriver(deps, source.value.driver, 'mounter.SetUpAt failed to get CSI client')
  checkLifecycle(source.lifecycle, source.value.driver, driverObject)
  const capabilities = await driver.nodeCapabilities(signal)
  const policy = groupPolicy(driverObject)
  const handle = handleOf(spec, podIdentity(pod).uid)
  const staged = source.lifecycle === 'Persistent' && capabilities.has('STAGE_UNSTAGE_VOLUME')
  const context = await publishContext(deps, spec, signal)
  await preparing(() => files.mkdirAll(target, 0o750, signal))
  const secrets = await publishSecrets(deps, request, signal)
  const information = driverObject?.spec?.podInfoOnMount ? podInformation(pod, source.lifecycle === 'Ephemeral') : {}
  const tokens = await serviceAccountTokens(deps.client, driverObject, pod, signal)
  const data = { ...publishData(deps, spec, source.value.driver, handle), ...contextData(seLinuxLabel) }
  await preparing(() => saveData(files, target, data, signal))
  const readOnly = spec.readOnly
  const call = {
    volumeId: handle,
    targetPath: mountPathOf(target),
    stagingPath: staged ? stagingPath(deps.root, persistent(spec)) : '',
    capability: capabilityOf(spec, capabilities, ownership.fsGroup, seLinuxLabel),
    readOnly,
    publishContext: context,
    volumeContext: { ...source.value.volumeAttributes, ...information, ...tokens.context },
    secrets: { ...secrets, ...tokens.secrets },
  }
  await publishOrCleanUp(deps, driver, call, request, signal)
  if (!publishesDirectories(driverObject))
    await checkPublished(deps.host, { target: call.targetPath, staging: call.stagingPath }, signal)
  if (!wantsOwnership(request, policy, capabilities)) return
  await applyGroup(deps, request, signal)
}

async function publishOrCleanUp(
  deps: CsiNodeDeps,
  driver: Driver,
  call: Parameters<Driver['node']['publish']>[0],
  { foundOnDisk, remount }: MountRequest,
  signal: AbortSignal,
): Promise<void> {
  try {
    await driver.node.publish(call, signal)
  } catch (thrown) {
    const error = await restagedIfMissing(deps, call.stagingPath, thrown, signal)
    // A pod may be using the mount, unless this was the first try and the driver refused for good (CSI-38).
    if (foundOnDisk || remount) throw error
    await failedFor(error, () => removeMountDirectory(deps.host, call.targetPath, signal))
  }
}

/** A driver that finds nothing staged is right if nothing is mounted there: then the volume is staged again first. */
async function restagedIfMissing(
  { host }: CsiNodeDeps,
  stagingPath: string,
  error: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  if (stagingPath === '' || !hasTag(error, 'failedPrecondition')) return error
  if (await isMounted(host.mounts, stagingPath, signal)) return error
  const { code, message, effect, tags } = asVolumeError(error)
  return new VolumeError(code, message, { effect, tags: [...tags, 'notStaged'], cause: error })
}

/** A driver may say that it publishes plain directories, with nothing mounted and perhaps nothing in them. */
const publishesDirectories = (driver: CSIDriver | undefined) =>
  driver?.metadata.annotations?.[annotations.publishesDirectories] === 'true'

async function applyGroup(
  deps: CsiNodeDeps,
  { target, ownership, spec }: MountRequest,
  signal: AbortSignal,
): Promise<void> {
  const path = mountPathOf(target)
  const wanted = { root: path, gid: ownership.fsGroup, readOnly: spec.readOnly, policy: ownership.changePolicy }
  try {
    await applyOwnership(deps.host.files, wanted, signal)
  } catch (cause) {
    const message = `applyFSGroup failed for vol ${spec.name}: ${asVolumeError(cause).message}`
    throw new VolumeError('GroupNotApplied', message, { effect: 'unknown', cause })
  }
}

/** Must we give the files to the pod's fsGroup? Not if the driver does it, by what the CSIDriver's policy says (CSI-40). */
export function wantsOwnership(
  { spec, ownership }: Pick<MountRequest, 'spec' | 'ownership'>,
  policy: GroupPolicy,
  capabilities: ReadonlySet<NodeCapabilityName>,
): boolean {
  if (ownership.fsGroup === undefined || spec.readOnly || capabilities.has('VOLUME_MOUNT_GROUP')) return false
  switch (policy) {
    case 'None':
      return false
    case 'File':
      return true
    case 'ReadWriteOnceWithFSType': {
      const modes = spec.persistentVolume?.spec?.accessModes
      const once = modes?.includes('ReadWriteOnce') === true || modes?.includes('ReadWriteOncePod') === true
      return (sourceOf(spec).value.fsType ?? '') !== '' && (spec.from === 'pod' || once)
    }
    default:
      return policy satisfies never
  }
}

type GroupPolicy = 'ReadWriteOnceWithFSType' | 'File' | 'None'

function groupPolicy(driver: CSIDriver | undefined): GroupPolicy {
  if (!driver) return 'ReadWriteOnceWithFSType'
  const policy = driver.spec?.fsGroupPolicy
  if (policy !== undefined) return policy
  throw new VolumeError('GroupPolicyMissing', 'the CSIDriver has no fsGroupPolicy', { effect: 'untried' })
}

/** The CSIDriver must list the lifecycle; without an object only persistent volumes are allowed (CSI-34). */
function checkLifecycle(mode: 'Persistent' | 'Ephemeral', driver: string, object: CSIDriver | undefined): void {
  const allowed = object ? (object.spec?.volumeLifecycleModes ?? ['Persistent']) : ['Persistent']
  if (allowed.includes(mode)) return
  const message = object
    ? `volume mode "${mode}" not supported by driver ${driver} (only supports [${allowed.map((each) => `"${each}"`).join(' ')}])`
    : `volume mode "${mode}" not supported by driver ${driver} (no CSIDriver object)`
  throw new VolumeError(
    'LifecycleRefused',
    `kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: ${message}`,
    {
      effect: 'untried',
    },
  )
}

function publishSecrets(deps: CsiNodeDeps, { spec, pod }: MountRequest, signal: AbortSignal) {
  const source = sourceOf(spec)
  const ref = source.value.nodePublishSecretRef
  const inline =
    source.lifecycle === 'Ephemeral' && ref
      ? { name: ref.name ?? '', namespace: podIdentity(pod).namespace }
      : undefined
  return readSecret(
    deps.client,
    inline ?? (source.lifecycle === 'Persistent' ? ref : undefined),
    'NodePublishSecretRef',
    signal,
  )
}

/** The label is saved only if there is one (CSI-7). */
const contextData = (label: string | undefined) => (label ? { seLinuxMountContext: label } : {})

function publishData(deps: CsiNodeDeps, spec: VolumeSpec, driver: string, handle: string) {
  return {
    specVolID: spec.name,
    volumeHandle: handle,
    driverName: driver,
    nodeName: deps.nodeName,
    volumeLifecycleMode: sourceOf(spec).lifecycle,
    attachmentID: attachmentOf(deps, driver, handle),
  }
}

/** What the agent itself knows of a volume. */
const knownData = (spec: VolumeSpec, volumeHandle: string): SavedData => ({
  driverName: sourceOf(spec).value.driver,
  volumeHandle,
})

export function findDriver(deps: CsiNodeDeps, name: string, doing: string): Driver {
  try {
    return deps.drivers.require(name)
  } catch (cause) {
    const message = `kubernetes.io/csi: ${doing}: ${asVolumeError(cause).message}`
    throw new VolumeError('DriverMissing', message, { effect: 'untried', cause })
  }
}

export function persistent(spec: VolumeSpec) {
  const source = sourceOf(spec)
  if (source.lifecycle === 'Persistent') return source.value
  throw new VolumeError('InlineVolume', 'an inline volume has no device', { effect: 'untried' })
}
