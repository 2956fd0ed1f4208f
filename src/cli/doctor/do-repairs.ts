// How is an orphan removed? Each is looked at again just before: what changed since the plan is left alone. Trees are removed by
// descriptor and never across a mount; nothing is unmounted by force, and a driver deletes what it holds itself.
import { createSystemClock } from '../../clock/system-clock.ts'
import { createControllerCalls } from '../../csi/controller.ts'
import { createWire } from '../../csi/service.ts'
import { createLinuxHost } from '../../host/linux/linux-host.ts'
import type { Host } from '../../host/host.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { openSocket } from '../commands/driver/socket.ts'
import type { Repair } from './repairs.ts'

export interface Repaired {
  readonly repair: Repair
  /** Why it was left alone or failed; absent where it is done. */
  readonly error?: string
}

export async function doRepairs(repairs: readonly Repair[], signal: AbortSignal): Promise<readonly Repaired[]> {
  await using host = createLinuxHost()
  const done: Repaired[] = []
  for (const repair of repairs) {
    try {
      await doRepair(host, repair, signal)
      done.push({ repair })
    } catch (error) {
      done.push({ repair, error: errorText(error) })
    }
  }
  return done
}

async function doRepair(host: Host, repair: Repair, signal: AbortSignal): Promise<void> {
  switch (repair.kind) {
    case 'unmount':
      return unmount(host, repair, signal)
    case 'removePodDirectory':
      return host.files.removeTree(repair.path, signal)
    case 'removeStaging':
      await host.files.removeEmptyTree(`${repair.path}/globalmount`, signal)
      await host.files.remove(`${repair.path}/vol_data.json`, signal)
      return host.files.remove(repair.path, signal)
    case 'removeStageRecord':
      return host.files.remove(repair.path, signal)
    case 'detachLoop':
      return detachLoop(host, repair, signal)
    case 'deleteVolume':
    case 'deleteSnapshot':
      return deleteStored(repair, signal)
    default:
      return repair satisfies never
  }
}

async function unmount(
  { mounts }: Host,
  { path, device }: Extract<Repair, { kind: 'unmount' }>,
  signal: AbortSignal,
): Promise<void> {
  const { mountPoint, device: now } = await mounts.info(path, signal)
  if (mountPoint !== path || now !== device) throw new Error(`something else is mounted at ${path} by now`)
  await mounts.unmount(path, {}, signal)
}

async function detachLoop(
  { devices, files }: Host,
  { device, file, deleted }: Extract<Repair, { kind: 'detachLoop' }>,
  signal: AbortSignal,
): Promise<void> {
  const backing = (await files.readText(`/sys/block/${device.slice('/dev/'.length)}/loop/backing_file`, signal)).trim()
  if (backing !== (deleted ? `${file} (deleted)` : file)) throw new Error(`${device} holds ${backing} by now`)
  if (await devices.isInUse(device, signal)) throw new Error(`${device} is in use`)
  await devices.detachLoop(device, signal)
}

async function deleteStored(
  { kind, id, socket }: Extract<Repair, { kind: 'deleteVolume' | 'deleteSnapshot' }>,
  signal: AbortSignal,
): Promise<void> {
  using channel = openSocket(socket)
  const calls = createControllerCalls({ wire: createWire(channel.transport), clock: createSystemClock() })
  if (kind === 'deleteVolume') await calls.deleteVolume(id, {}, signal)
  else await calls.deleteSnapshot(id, {}, signal)
}
