// Is a volume staged at a path, or was that only tried? The kernel's mount table and loop devices decide, with the mark of
// what was asked for: a mark alone proves nothing, for a stage may have failed, or the machine may have been restarted.
import { isAlreadyMounted } from '../../host/clean-mount-point.ts'
import type { Host } from '../../host/host.ts'
import type { StageMark } from './stages.ts'

export interface StageFacts {
  readonly mounted: boolean
  readonly pathExists: boolean
  /** A loop device is bound to the volume's image. */
  readonly bound: boolean
}

export function isStaged(access: StageMark['access'], { mounted, pathExists, bound }: StageFacts): boolean {
  if (mounted) return true
  if (!bound) return false
  switch (access) {
    case 'mount':
      return false
    case 'block':
      return true
    case 'unknown':
      // An older version's: a block stage, or a mount that failed. After that failure the caller removed the directory.
      return pathExists
    default:
      return access satisfies never
  }
}

/** The marks of places where the volume is staged now. */
export async function stagedAt(
  host: Host,
  image: string,
  marks: readonly StageMark[],
  signal: AbortSignal,
): Promise<readonly StageMark[]> {
  if (marks.length === 0) return []
  const bound = (await host.devices.loopsOf(image, signal)).length > 0
  const staged: StageMark[] = []
  for (const mark of marks) {
    const mounted = await isAlreadyMounted(host, mark.path, signal)
    const pathExists = mounted || (await host.files.exists(mark.path, signal))
    if (isStaged(mark.access, { mounted, pathExists, bound })) staged.push(mark)
  }
  return staged
}

/** Frees the image's loop devices. One that is mounted or held stays, and is named: its file must not go. */
export async function releaseLoops(host: Host, image: string, signal: AbortSignal): Promise<readonly string[]> {
  const held: string[] = []
  for (const loop of await host.devices.loopsOf(image, signal)) {
    if (await host.devices.isInUse(loop, signal)) held.push(loop)
    else await host.devices.detachLoop(loop, signal)
  }
  return held
}
