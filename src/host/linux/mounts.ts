// How does Linux mount? By system calls; mount(8) only for filesystems that bring a helper program (MOUNT-1).
// The mount table is never read for one question: statx and statmount answer about one path.

import { join, relative } from 'node:path/posix'
import type { BindRequest, Host, MountInfo, MountRequest, Mounts } from '../host.ts'
import { HostError, hasCode, isDeadMount } from '../host-error.ts'
import { mountArguments, mountFailureText, refusalText } from '../mount-failure.ts'
import { LinuxOpenPath } from './files.ts'
import { needsHelper, parseMountOptions } from './mount-options.ts'
import type { WorkerPool } from './worker-pool.ts'

const MNT_FORCE = 1
const MNT_DETACH = 2
const helperTimeoutMs = 120_000
/** A journal may have to be replayed first. */
const mountTimeoutMs = 120_000

export function createLinuxMounts(pool: WorkerPool, run: Host['run'], searchPath: string): Mounts {
  const known = new Map<bigint, MountInfo>()
  const info: Mounts['info'] = (path, signal) => pool.call('mountInfo', [path], { path }, signal)
  const isMountPoint: Mounts['isMountPoint'] = (path, signal) => pool.call('isMountPoint', [path], { path }, signal)
  const setPropagation: Mounts['setPropagation'] = (target, to, { recursive }, signal) =>
    pool.call('setPropagation', [target, to, recursive], { path: target }, signal)
  return {
    info,
    isMountPoint,
    setPropagation,
    list: (signal) => list(pool, signal),
    mount: (request, signal) => mount(pool, run, searchPath, request, signal),
    bind: (request, signal) => bind(pool, request, signal),

    async answers(path, timeoutMs, signal) {
      try {
        await pool.call('usage', [path], { path, timeoutMs }, signal)
        return true
      } catch (error) {
        if (hasCode(error, 'ABORTED')) throw error
        return !isDeadMount(error)
      }
    },

    async remount(target, options, signal) {
      // The kernel replaces all per-mount flags on a remount, so the present ones are given again.
      const current = await info(target, signal)
      const { flags, data } = parseMountOptions([...current.options, ...options.filter((word) => word !== 'remount')])
      await pool.call('remount', [target, flags, data.join(',')], { path: target }, signal)
    },

    async makeShared(path, signal) {
      if ((await info(path, signal)).propagation === 'shared') return
      if (!(await isMountPoint(path, signal))) await bind(pool, { source: path, target: path, recursive: true }, signal)
      await setPropagation(path, 'shared', { recursive: true }, signal)
    },

    unmount(target, { force, lazy, timeoutMs }, signal) {
      const flags = (force === true ? MNT_FORCE : 0) | (lazy === true ? MNT_DETACH : 0)
      const limits = { path: target, escape: flags !== 0, ...(timeoutMs === undefined ? {} : { timeoutMs }) }
      return pool.call('unmount', [target, flags], limits, signal)
    },

    references: (path, signal) => references(pool, known, path, signal),
  }
}

async function mount(
  pool: WorkerPool,
  run: Host['run'],
  searchPath: string,
  request: MountRequest,
  signal: AbortSignal,
): Promise<void> {
  const parsed = parseMountOptions([...request.options, ...(request.secretOptions ?? [])])
  const { source, target, type, options, timeoutMs = mountTimeoutMs } = request
  if (parsed.bind !== 'none')
    return await bind(pool, { source, target, recursive: parsed.bind === 'rbind', options }, signal)
  if (needsHelper(type)) {
    const hasHelper = () => pool.call('helperExists', [type, searchPath], { path: '' }, signal)
    return await mountByHelper(run, request, hasHelper, signal)
  }
  try {
    await pool.call(
      'mount',
      [source, target, type, parsed.flags, parsed.data.join(',')],
      { path: target, timeoutMs },
      signal,
    )
  } catch (error) {
    throw explained(error, request)
  }
}

async function list(pool: WorkerPool, signal: AbortSignal): Promise<readonly MountInfo[]> {
  const ids = await pool.call('mountIds', [], { path: '' }, signal)
  const infos = ids === undefined ? [] : await pool.call('aboutMounts', [ids], { path: '' }, signal)
  // Only an old kernel leaves mounts out; then the table is read instead.
  return ids !== undefined && infos.length * 2 > ids.length ? infos : pool.call('mountTable', [], { path: '' }, signal)
}

/** All mounts, but asking the kernel only about those not seen before: what a mount shows never changes. */
async function listKnown(
  pool: WorkerPool,
  known: Map<bigint, MountInfo>,
  signal: AbortSignal,
): Promise<readonly MountInfo[]> {
  const ids = await pool.call('mountIds', [], { path: '' }, signal)
  if (ids === undefined) return list(pool, signal)
  const present = new Set(ids)
  for (const id of known.keys()) if (!present.has(id)) known.delete(id)
  const fresh = ids.filter((id) => !known.has(id))
  for (const info of await pool.call('aboutMounts', [fresh], { path: '' }, signal)) known.set(info.id, info)
  return known.size * 2 > ids.length ? [...known.values()] : list(pool, signal)
}

async function references(
  pool: WorkerPool,
  known: Map<bigint, MountInfo>,
  path: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const own = await pool.call('mountInfo', [path], { path }, signal).catch((error: unknown) => {
    // A path that is missing or dead has no references that can be found (MOUNT-17).
    if (hasCode(error, 'ENOENT', 'ENOTDIR') || isDeadMount(error)) return undefined
    throw error
  })
  if (own === undefined) return []
  const resolved = await pool.call('realpath', [path], { path }, signal)
  const root = join(own.root, relative(own.mountPoint, resolved))
  const candidates = (await listKnown(pool, known, signal)).filter(
    (one) => one.device === own.device && one.root === root && one.id !== own.id,
  )
  // Mount points may move with their directories: the few candidates are read again.
  const hits = await pool.call('aboutMounts', [candidates.map(({ id }) => id)], { path: '' }, signal)
  return (hits.length === 0 ? candidates : hits).map(({ mountPoint }) => mountPoint)
}

function bind(pool: WorkerPool, request: BindRequest, signal: AbortSignal): Promise<void> {
  const { source, target, recursive = false, readOnly = false } = request
  const { attributesSet, attributesClear } = parseMountOptions([
    ...(request.options ?? []),
    ...(readOnly ? ['ro'] : []),
  ])
  const from = source instanceof LinuxOpenPath ? source.descriptor : typeof source === 'string' ? source : source.path
  return pool.call('bind', [from, target, attributesSet, attributesClear, recursive], { path: target }, signal)
}

async function mountByHelper(
  run: Host['run'],
  request: MountRequest,
  hasHelper: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const secret = request.secretOptions ?? []
  const argv = ['mount', ...mountArguments(request, secret)] as const
  const timeoutMs = request.timeoutMs ?? helperTimeoutMs
  const result = await run({ argv, timeoutMs, secretArguments: secret.length === 0 ? [] : [4] }, signal)
  if (result.exitCode === 0) return
  const text = mountFailureText(request, `${result.stdout}${result.stderr}`, result.exitCode)
  if (await hasHelper()) throw new HostError('CHILD', text, { path: request.target })
  throw new HostError('NOPROGRAM', `${text}The program mount.${request.type} is not installed.\n`, {
    path: request.target,
  })
}

function explained(error: unknown, request: MountRequest): unknown {
  if (!(error instanceof HostError) || !error.certain) return error
  const text = mountFailureText(request, refusalText(request.target, error.code))
  return new HostError(error.code, text, { path: request.target, cause: error })
}
