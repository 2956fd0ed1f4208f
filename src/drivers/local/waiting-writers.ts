// Who has written what is not on disk yet, and who was killed while waiting to write? Both are asked of /proc.
import type { Host } from '../../host/host.ts'

/** Of the whole machine: no interface tells which disk it is for. */
export async function unflushedBytes({ files }: Pick<Host, 'files'>, signal: AbortSignal): Promise<bigint> {
  const text = await files.readText('/proc/meminfo', signal).catch(() => '')
  const field = (name: string) => BigInt(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? '0')
  return (field('Dirty') + field('Writeback')) * 1024n
}

export async function isAnyKilled({ files }: Pick<Host, 'files'>, signal: AbortSignal): Promise<boolean> {
  const names = await files.readDir('/proc', signal).catch((): string[] => [])
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue
    // A process may end meanwhile.
    if (isKilled(await files.readText(`/proc/${name}/status`, signal).catch(() => ''))) return true
  }
  return false
}

/** It waits without hearing signals, and SIGKILL is among those that wait for it. */
function isKilled(status: string): boolean {
  if (!/^State:\s+D/m.test(status)) return false
  return [...status.matchAll(/^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)/gm)].some(
    ([, mask = '0']) => ((BigInt(`0x${mask}`) >> 8n) & 1n) === 1n,
  )
}
