// What did an earlier process, an older version, a restored backup or a reboot leave? Marks of stages that are none, and loop
// devices that hold our images for nobody. Only what is certainly ours and unused is touched.
import { join } from 'node:path/posix'
import type { Records } from '../../csi/kit/backend.ts'
import type { Host } from '../../host/host.ts'
import type { DiskLayout } from './records.ts'
import { imageName } from './records.ts'
import { releaseLoops, stagedAt } from './staged.ts'
import type { Stages } from './stages.ts'

interface HealDeps {
  readonly host: Host
  readonly layout: DiskLayout
  readonly records: Records
  readonly stages: Stages
}

export async function heal(deps: HealDeps, nodeId: string, signal: AbortSignal): Promise<void> {
  const { host, layout } = deps
  for (const id of await host.files.readDir(layout.volumes, signal)) {
    // One volume that cannot be looked at must not keep the driver from serving all others; its own unstage and delete
    // do the same again.
    await healVolume(deps, id, nodeId, signal).catch(() => undefined)
  }
}

async function healVolume(deps: HealDeps, id: string, nodeId: string, signal: AbortSignal): Promise<void> {
  const { host, layout, records, stages } = deps
  const record = await records.volume(id, signal)
  // What a removal left that failed half-way; an image without a record is for people to judge (hawser doctor).
  if (!record) return records.removeVolume(id, signal)
  if (record.node !== nodeId) return
  const image = join(layout.volume(id), imageName)
  const marks = await stages.of(id, signal)
  const staged = await stagedAt(host, image, marks, signal)
  for (const mark of marks) if (!staged.includes(mark)) await stages.remove(id, mark.path, signal)
  // Named by its image's path, bound to nothing that is staged, and opened by nobody.
  if (staged.length === 0) await releaseLoops(host, image, signal)
}
