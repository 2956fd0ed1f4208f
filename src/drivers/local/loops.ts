// How does an image become a mounted filesystem or a device? Through a loop device, formatted on first use, checked on
// every later one. What is attached and mounted is asked of the kernel each time.
import { join } from 'node:path/posix'
import type { NodeBackend, StageInput, VolumeRecord } from '../../csi/kit/backend.ts'
import { fail } from '../../csi/kit/checks.ts'
import { isAlreadyMounted } from '../../host/clean-mount-point.ts'
import type { DiskContent, Host } from '../../host/host.ts'
import { hasCode } from '../../host/host-error.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { isThick } from './parameters.ts'
import type { SpaceGuard } from './guard.ts'
import { imageName } from './records.ts'
import type { DiskLayout } from './records.ts'
import { stagedAt } from './staged.ts'
import type { Stages } from './stages.ts'

const checkMs = 3_600_000
const makeMs = 1_800_000
const defaultFilesystem = 'ext4'
const packages: Readonly<Record<string, string>> = {
  ext4: 'e2fsprogs',
  ext3: 'e2fsprogs',
  xfs: 'xfsprogs',
  btrfs: 'btrfs-progs',
}

export function createLoopNode(host: Host, layout: DiskLayout, stages: Stages, guard: SpaceGuard): NodeBackend {
  const imageOf = (volume: VolumeRecord) => join(layout.volume(volume.id), imageName)
  const loopFor = async (volume: VolumeRecord, readOnly: boolean, signal: AbortSignal): Promise<string> => {
    const image = imageOf(volume)
    for (const loop of await host.devices.loopsOf(image, signal)) {
      if ((await host.devices.isReadOnly(loop, signal)) === readOnly) return loop
    }
    return host.devices.attachLoop({ file: image, readOnly }, signal)
  }
  return {
    async stage(input, signal) {
      const { volume, path, access } = input
      if (access.kind === 'mount' && (await isAlreadyMounted(host, path, signal))) return
      await stages.add(volume.id, { path, access: access.kind }, signal)
      const device = await loopFor(volume, false, signal)
      if (access.kind === 'block') return stages.forgetFormat(volume.id, signal)
      await host.files.mkdirAll(path, 0o750, signal)
      const view = await guard.view(signal)
      const full = view.level === 'out' ? guard.describe(view) : undefined
      await mountFilesystem(host, stages, input, { ...access, full }, device, signal)
    },
    async isStaged(volume, path, signal) {
      if (await isAlreadyMounted(host, path, signal)) return true
      const marks = (await stages.of(volume.id, signal)).filter((mark) => mark.path === path)
      return (await stagedAt(host, imageOf(volume), marks, signal)).length > 0
    },
    async unstage(volume, path, signal) {
      using _thawed = await guard.leaving(path, signal)
      await host.mounts.unmount(path, {}, signal)
      const others = (await stages.of(volume.id, signal)).filter((mark) => mark.path !== path)
      if ((await stagedAt(host, imageOf(volume), others, signal)).length === 0) {
        // One that somebody still has open is freed by the kernel when the last user closes it.
        for (const loop of await host.devices.loopsOf(imageOf(volume), signal))
          await host.devices.detachLoop(loop, signal)
      }
      // Last: while the mark is there, everything above is done again.
      await stages.remove(volume.id, path, signal)
    },
    async health(signal) {
      const view = await guard.view(signal)
      const message = guard.describe(view)
      if (message === undefined) return []
      return [{ reason: view.level === 'out' ? 'OutOfSpace' : 'LowSpace', message }]
    },
    device: (volume, readOnly, signal) => loopFor(volume, readOnly, signal),
    async grow(volume, path, signal) {
      const loops = await host.devices.loopsOf(imageOf(volume), signal)
      for (const loop of loops) await host.devices.refreshLoop(loop, signal)
      const device = loops[0]
      if (device === undefined) throw fail('FAILED_PRECONDITION', `volume ${volume.id} is not staged on this node`)
      const { kind } = await host.files.stat(path, signal)
      if (kind !== 'directory') return
      try {
        await host.filesystems.grow({ device, mountPath: path }, signal)
      } catch (error) {
        // Where the kernel lets nobody grow a mounted ext4 (no CAP_SYS_RESOURCE), the next stage does it before mounting.
        if (!hasCode(error, 'EPERM')) throw error
        throw fail('FAILED_PRECONDITION', `${errorText(error)}; the volume grows when it is mounted next`)
      }
    },
  }
}

async function mountFilesystem(
  host: Host,
  stages: Stages,
  { volume, path, readOnly }: StageInput,
  access: Extract<StageInput['access'], { kind: 'mount' }> & { readonly full: string | undefined },
  device: string,
  signal: AbortSignal,
): Promise<void> {
  const known = await contentOf(host, stages, volume, device, signal)
  const wanted = access.fsType || (known.kind === 'filesystem' ? known.type : defaultFilesystem)
  const options = [
    ...access.options,
    ...(readOnly ? ['ro'] : []),
    ...(wanted === 'xfs' ? ['nouuid'] : []),
    // Btrfs discards by itself.
    ...(wanted === 'btrfs' && isThick(volume) ? ['nodiscard'] : []),
  ]
  const mount = () => host.mounts.mount({ source: device, target: path, type: wanted, options }, signal)
  switch (known.kind) {
    case 'blank':
      if (readOnly)
        throw fail(
          'FAILED_PRECONDITION',
          `volume ${volume.id} is empty and must be written once before it is read only`,
        )
      if (access.full !== undefined)
        throw fail('RESOURCE_EXHAUSTED', `volume ${volume.id} cannot be formatted: ${access.full}`)
      // The mark stands while mkfs runs: what is cut short is not taken for somebody's data. It is settled before the
      // filesystem can be mounted, so nothing that was ever used is formatted again.
      await stages.setFormat(volume.id, { kind: 'begun', type: wanted }, signal)
      await makeFilesystem(host, device, wanted, signal)
      await stages.setFormat(volume.id, { kind: 'done', type: wanted }, signal)
      await mount()
      return
    case 'unknown':
      throw fail('FAILED_PRECONDITION', `volume ${volume.id} holds ${known.description}, no filesystem`)
    case 'filesystem':
      if (known.type !== wanted)
        throw fail('FAILED_PRECONDITION', `volume ${volume.id} holds ${known.type}, not ${wanted}`)
      await checkFilesystem(host, device, signal)
      if (!readOnly) await growUnmounted(host, device, known.type, signal)
      await mount()
      break
    default:
      known satisfies never
  }
  // A clone or restored snapshot may have been given more room than its filesystem knows of.
  if (volume.source && !wanted.startsWith('ext') && !readOnly)
    await host.filesystems.grow({ device, mountPath: path }, signal)
}

/** What our records say; the device is read only if something else may have written it (a source, raw use). */
async function contentOf(
  host: Host,
  stages: Stages,
  volume: VolumeRecord,
  device: string,
  signal: AbortSignal,
): Promise<DiskContent> {
  const format = await stages.format(volume.id, signal)
  if (format?.kind === 'done') return { kind: 'filesystem', type: format.type }
  if (format?.kind === 'begun') return { kind: 'blank' }
  return host.filesystems.detect(device, signal)
}

async function makeFilesystem(host: Host, device: string, type: string, signal: AbortSignal): Promise<void> {
  const missing = () => {
    const hint = packages[type] ? ` (package ${packages[type]})` : ''
    return fail('FAILED_PRECONDITION', `cannot make ${type}: mkfs.${type} is not installed on this node${hint}`)
  }
  if (!/^[a-z0-9]+$/.test(type)) throw fail('INVALID_ARGUMENT', `${JSON.stringify(type)} is no filesystem`)
  // A fresh image has nothing to discard; what an interrupted mkfs left may be overwritten.
  // Discarding would also give back what a thick image has taken.
  const options = type.startsWith('ext') ? ['-q', '-F', '-m0', '-E', 'nodiscard'] : noDiscard(type)
  try {
    const result = await host.run({ argv: [`mkfs.${type}`, ...options, device], timeoutMs: makeMs }, signal)
    if (result.exitCode !== 0)
      throw fail('INTERNAL', `mkfs.${type} ${device} failed: ${result.stdout}${result.stderr}`.trim())
  } catch (error) {
    throw hasCode(error, 'NOPROGRAM') ? missing() : error
  }
}

const noDiscard = (type: string) => (type === 'xfs' || type === 'btrfs' ? ['-f', '-K'] : ['-f'])

async function checkFilesystem(host: Host, device: string, signal: AbortSignal): Promise<void> {
  // Another stage of the same volume may have it mounted already: then it was checked.
  if (await host.devices.isInUse(device, signal)) return
  const result = await host.filesystems.check(device, signal)
  if (result.kind === 'errorsLeft')
    throw fail('INTERNAL', `fsck found errors on ${device} it could not correct: ${result.output}`)
}

/** ext4 can always grow while nobody has it mounted; it insists on a full check first. */
async function growUnmounted(host: Host, device: string, type: string, signal: AbortSignal): Promise<void> {
  if (!type.startsWith('ext') || (await host.devices.isInUse(device, signal))) return
  if ((await filesystemBytes(host, device, signal)) >= (await host.devices.sizeBytes(device, signal)) - 65_536n) return
  const check = await host.run({ argv: ['e2fsck', '-f', '-p', device], timeoutMs: checkMs }, signal)
  if (check.exitCode > 1) throw fail('INTERNAL', `e2fsck ${device} failed: ${check.stdout}${check.stderr}`)
  await host.filesystems.grow({ device, mountPath: '' }, signal)
}

/** From the superblock; 0 if it cannot be read, so that growing is tried. */
async function filesystemBytes(host: Host, device: string, signal: AbortSignal): Promise<bigint> {
  const { stdout } = await host.run({ argv: ['dumpe2fs', '-h', device], timeoutMs: 60_000 }, signal)
  const field = (name: string) => BigInt(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(stdout)?.[1] ?? '0')
  return field('Block count') * field('Block size')
}
