// How is a failed mount told? In the words that users know from kubelet events and search for: mount(8)'s, also where the
// kernel was asked without it. Secret options never appear (MOUNT-2).

import type { MountRequest } from './host.ts'

/** What mount(8) ends with whenever the kernel or a helper refuses. */
const mountRefused = 32

export function mountFailureText(
  request: Pick<MountRequest, 'source' | 'target' | 'type' | 'options' | 'secretOptions'>,
  output: string,
  exitCode = mountRefused,
): string {
  const shown = mountArguments(
    request,
    (request.secretOptions ?? []).map(() => '<masked>'),
  ).join(' ')
  return `mount failed: exit status ${exitCode}\nMounting command: mount\nMounting arguments: ${shown}\nOutput: ${output}\n`
}

/** `-t nfs -o hard,vers=4 server:/export /target`, with these in place of the secret options. */
export function mountArguments(
  { source, target, type, options }: Pick<MountRequest, 'source' | 'target' | 'type' | 'options'>,
  secrets: readonly string[],
): readonly string[] {
  const all = [...options, ...secrets]
  return ['-t', type, ...(all.length === 0 ? [] : ['-o', all.join(',')]), source, target]
}

const reasons: Readonly<Record<string, string>> = {
  EINVAL: 'wrong filesystem type, bad option or bad superblock',
  ENODEV: 'the kernel does not know this filesystem type',
  EBUSY: 'already mounted there, or the device is busy',
  ENOTBLK: 'a block device is required',
  EUCLEAN: 'the filesystem is damaged',
  ENOENT: 'no such source or target',
}

/** What mount(8) would print of the kernel's refusal. */
export function refusalText(target: string, code: string): string {
  const reason = reasons[code]
  return `mount: ${target}: ${reason === undefined ? code : `${reason} (${code})`}`
}
