// What does /proc say about a process? A process that is gone has no answer.
import { readFile, readlink } from 'node:fs/promises'

export interface ProcessStat {
  readonly state: string
  /** In clock ticks since boot. */
  readonly startTime: string
}

export async function readStat(pid: number): Promise<ProcessStat | undefined> {
  try {
    return parseStat(await readFile(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return undefined // gone
  }
}

export function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { state: fields[0] ?? '', startTime: fields[19] ?? '' }
}

/** `mnt:[4026531841]` */
export async function mountNamespaceOf(pid: number | string): Promise<string | undefined> {
  try {
    return await readlink(`/proc/${pid}/ns/mnt`)
  } catch {
    return undefined // gone, or a kernel thread
  }
}
