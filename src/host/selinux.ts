// Is SELinux on, and how are files of containers labelled by its policy? Read from where the kernel and the policy say it;
// nothing is done where it is off.
import { join } from 'node:path/posix'
import type { Files, Host } from './host.ts'
import { readIfThere } from './read-if-there.ts'

const enforceFile = '/sys/fs/selinux/enforce'
const policies = '/etc/selinux'
/** What policies without a word about containers come down to. */
const usualLabel = 'system_u:object_r:container_file_t:s0'

/** Undefined where SELinux is off. */
export async function containerFileLabel(files: Files, signal: AbortSignal): Promise<string | undefined> {
  if ((await readIfThere(files, enforceFile, signal)) === undefined) return undefined
  const config = (await readIfThere(files, join(policies, 'config'), signal)) ?? ''
  const policy = /^\s*SELINUXTYPE\s*=\s*(\S+)/m.exec(config)?.[1] ?? 'targeted'
  const contexts = (await readIfThere(files, join(policies, policy, 'contexts/lxc_contexts'), signal)) ?? ''
  return /^\s*file\s*=\s*"?([^"\s]+)"?/m.exec(contexts)?.[1] ?? usualLabel
}

/** LAYOUT-9: what is made below these directories is for containers. */
export async function labelForContainers(
  { run }: Pick<Host, 'run'>,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { exitCode, stderr } = await run({ argv: ['chcon', usualLabel, ...paths], timeoutMs: 10_000 }, signal)
  if (exitCode !== 0) throw new Error(`chcon: ${stderr.trim()}`)
}

/** MOUNT-22: the label that a mount was given, from its options in the mount table. */
export function contextOf(options: readonly string[]): string | undefined {
  const found = options.find((option) => option.startsWith('context='))
  return found?.slice('context='.length).replaceAll('"', '')
}
