// Where can an agent die? At the beginning of every step of every operation, at an operation's end, and after every single
// change it makes to the machine. This tells those points by name and kills the process at a chosen one; tests only.
import { appendFileSync } from 'node:fs'
import type { LinuxHost } from '../../src/host/linux/linux-host.ts'
import type { OperationObserver } from '../../src/volume/operation.ts'

/** What changes the machine; questions cannot leave anything behind. */
export const changes = {
  files:
    'mkdir mkdirAll mkdirEach writeFile symlink rename chmod lchown rmdir unlink remove removeTree removeEmptyTree mkdirBeneath writeTree setGroup',
  mounts: 'mount bind remount setPropagation makeShared unmount',
  devices: 'attachLoop detachLoop',
  filesystems: 'make grow',
} as const

/** HAWSER_TEST_POINTS names a file for the points passed; HAWSER_TEST_KILL_AT one at which to die. */
export function killPoints(
  host: LinuxHost,
  root: string,
  env: NodeJS.ProcessEnv,
): { readonly host: LinuxHost; readonly observer?: OperationObserver } {
  const { HAWSER_TEST_POINTS: file, HAWSER_TEST_KILL_AT: killAt } = env
  if (file === undefined && killAt === undefined) return { host }
  const pass = (point: string) => {
    if (file !== undefined) appendFileSync(file, `${point}\n`)
    if (point === killAt) process.kill(process.pid, 'SIGKILL')
  }
  const observer: OperationObserver = {
    onOperation({ operation, plugin, phase, step }) {
      if (phase === 'step') pass(`step ${operation} ${plugin} ${step}`)
      if (phase === 'succeeded') pass(`end ${operation} ${plugin}`)
    },
  }
  const watched = { ...host }
  for (const part of ['files', 'mounts', 'devices', 'filesystems'] as const) {
    const names: readonly string[] = changes[part].split(' ')
    Object.assign(watched, { [part]: watchCalls(host[part], part, names, root, pass) })
  }
  return { host: watched, observer }
}

function watchCalls(
  port: object,
  part: string,
  names: readonly string[],
  root: string,
  pass: (point: string) => void,
): object {
  const calls = port as Record<string, (...words: unknown[]) => Promise<unknown>> // every member of these ports is a call
  return Object.fromEntries(
    Object.entries(calls).map(([name, call]) => [
      name,
      !names.includes(name)
        ? call
        : async (...words: unknown[]) => {
            const answer = await call(...words)
            pass(`after ${part}.${name} ${placeOf(words[0], root)}`)
            return answer
          },
    ]),
  )
}

/** The path that a call is about, without what differs from pod to pod and from time to time. */
function placeOf(first: unknown, root: string): string {
  const { target, file, device, root: top } = (typeof first === 'object' ? first : {}) as Record<string, unknown>
  const path = String(typeof first === 'string' ? first : (target ?? file ?? device ?? top ?? ''))
  return path
    .replace(root, '')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'POD')
    .replaceAll(/\.\.\d{4}_[^/]*|\d{6,}/g, 'TIME')
    .replaceAll(/loop\d+/g, 'LOOP')
}
