// How does the data of the built-in driver's volumes get into a backup, and back? Each image is one sparse archive beside the
// backup, written while its filesystem is frozen, with a digest that is checked before anything is restored from it.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  copyFileSync,
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from './config.ts'
import { mountsOfImage } from './image-mounts.ts'
import { readIfThere, writePrivate } from './private-files.ts'

export interface SavedImage {
  readonly kind: 'volume' | 'snapshot'
  readonly id: string
  /** The driver's own record, and what it knows of the contents. Marks of stages stay behind: nothing is staged there. */
  readonly record: string
  readonly format?: string
  /** What an image that was not written to since then still has. */
  readonly unchanged: { readonly bytes: string; readonly modifiedNs: string; readonly inode: string }
  readonly sha256: string
  /** `frozen`: a filesystem in use, at one moment. `raw`: a block device in use, copied as it was written. */
  readonly state: 'unused' | 'frozen' | 'raw'
}

export interface SaveRequest {
  /** The server's data directory. */
  readonly directory: string
  /** The backup; archives lie in `FILE.data`. */
  readonly file: string
  /** An earlier backup: archives of images that did not change are linked. */
  readonly since?: { readonly file: string; readonly images: readonly SavedImage[] }
  readonly onProgress: (text: string) => void
  /** Ends the copy; what was written is removed. */
  readonly signal: AbortSignal
}

export const dataDirectoryOf = (file: string) => `${file}.data`
const archiveOf = (file: string, { kind, id }: Pick<SavedImage, 'kind' | 'id'>) =>
  join(dataDirectoryOf(file), `${kind}-${id}.tar`)
const kinds = ['volume', 'snapshot'] as const

export async function saveVolumeData(request: SaveRequest): Promise<readonly SavedImage[]> {
  const found = kinds.flatMap((kind) => imagesIn(request.directory, kind))
  const target = dataDirectoryOf(request.file)
  if (existsSync(target)) throw new UsageError(`${target} exists already`, 'choose another name')
  mkdirSync(target, { mode: 0o700 })
  const saved: SavedImage[] = []
  try {
    for (const [index, place] of found.entries()) {
      request.onProgress(`copying ${place.kind} ${place.id} (${index + 1} of ${found.length})`)
      saved.push(await saveImage(request, place))
    }
  } catch (error) {
    rmSync(target, { recursive: true, force: true })
    throw error
  }
  return saved
}

interface ImagePlace extends Pick<SavedImage, 'kind' | 'id'> {
  readonly path: string
}

/** Only what is whole: an image that is being made has no record or no name yet. */
function imagesIn(directory: string, kind: SavedImage['kind']): ImagePlace[] {
  const parent = join(directory, 'volumes', `${kind}s`)
  if (!existsSync(parent)) return []
  return readdirSync(parent)
    .toSorted()
    .map((id) => ({ kind, id, path: join(parent, id) }))
    .filter(({ path }) => existsSync(join(path, 'record.json')) && existsSync(join(path, 'image')))
}

async function saveImage(request: SaveRequest, place: ImagePlace): Promise<SavedImage> {
  const { path, kind, id } = place
  const image = join(path, 'image')
  request.signal.throwIfAborted()
  await using held = await hold(image)
  const about = {
    kind,
    id,
    record: readFileSync(join(path, 'record.json'), 'utf8'),
    ...formatOf(path),
    unchanged: markOf(image),
    state: held.state,
  }
  const archive = archiveOf(request.file, place)
  const before = request.since?.images.find((each) => each.kind === kind && each.id === id)
  if (before && JSON.stringify(before.unchanged) === JSON.stringify(about.unchanged) && held.state !== 'raw') {
    linkOrCopy(archiveOf(request.since!.file, place), archive)
    if ((await digestOf(archive)) === before.sha256) return { ...about, sha256: before.sha256 }
    rmSync(archive)
  }
  return { ...about, sha256: await writeArchive(path, archive, held.state === 'raw', request.signal) }
}

/** The filesystem on the image is frozen until disposed. One that is frozen already stays so. */
async function hold(image: string): Promise<AsyncDisposable & { readonly state: SavedImage['state'] }> {
  const { mounted, isBound } = mountsOfImage(image)
  const path = mounted[0]
  if (path === undefined) return { state: isBound ? 'raw' : 'unused', [Symbol.asyncDispose]: async () => {} }
  // A process of its own, in a session of its own: it thaws when its input ends, also if this process is killed. Ctrl-C does not reach it.
  const keeper = spawn('sh', ['-c', freezeUntilInputEnds, 'sh', path], {
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  })
  const ended = exitOf(keeper)
  await Promise.race([ended, once(keeper.stdout, 'data')])
  return {
    state: 'frozen',
    async [Symbol.asyncDispose]() {
      keeper.stdin.end()
      await ended
    },
  }
}

/** Fails, and changes nothing, where somebody else has frozen it. */
const freezeUntilInputEnds = 'fsfreeze --freeze "$1" || exit; echo frozen; read -r end; fsfreeze --unfreeze "$1"'

/** Holes are not read and not stored. The name appears when everything is on disk. */
async function writeArchive(
  directory: string,
  archive: string,
  mayChange: boolean,
  signal: AbortSignal,
): Promise<string> {
  const partial = `${archive}.partial`
  const hash = createHash('sha256')
  const file = await open(partial, 'wx', 0o600)
  try {
    const argv = ['--create', '--sparse', '--format=posix', '--directory', directory, '--', 'image']
    const tar = spawn('tar', argv, { stdio: ['ignore', 'pipe', 'ignore'] })
    const ended = exitOf(tar)
    using stack = new DisposableStack()
    const end = () => void tar.kill('SIGKILL')
    signal.addEventListener('abort', end)
    stack.defer(() => signal.removeEventListener('abort', end))
    for await (const piece of tar.stdout) {
      hash.update(piece as Buffer)
      await file.write(piece as Buffer)
    }
    const code = await ended
    signal.throwIfAborted()
    // 1: the file changed while it was read, which only a device that somebody writes to may do.
    if (code !== 0 && !(mayChange && code === 1))
      throw new Error(`tar could not read ${directory}/image whole (exit status ${code}): take the backup again`)
    await file.sync()
  } finally {
    await file.close()
  }
  renameSync(partial, archive)
  return hash.digest('hex')
}

/** Every archive is there and whole; found out before anything is made. */
export async function checkVolumeData(
  file: string,
  images: readonly SavedImage[],
  onProgress: (text: string) => void,
): Promise<void> {
  for (const [index, image] of images.entries()) {
    const archive = archiveOf(file, image)
    onProgress(`checking ${archive} (${index + 1} of ${images.length})`)
    if (!existsSync(archive)) throw new UsageError(`${archive} is missing`, `it belongs to ${file}: copy both`)
    if ((await digestOf(archive)) !== image.sha256)
      throw new UsageError(`${archive} is damaged: it is not what the backup says`, 'use another backup')
  }
}

export async function restoreVolumeData(
  file: string,
  images: readonly SavedImage[],
  directory: string,
  onProgress: (text: string) => void,
): Promise<void> {
  for (const [index, image] of images.entries()) {
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(image.id)) throw new UsageError(`"${image.id}" is no id of a volume`)
    onProgress(`restoring ${image.kind} ${image.id} (${index + 1} of ${images.length})`)
    const path = join(directory, 'volumes', `${image.kind}s`, image.id)
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const options = ['--extract', '--sparse', '--no-same-owner', '--file', archiveOf(file, image)]
    const code = await run(['tar', ...options, '--directory', path, '--', 'image'])
    if (code !== 0) throw new Error(`tar could not restore ${image.kind} ${image.id} (exit status ${code})`)
    if (image.format !== undefined) writePrivate(join(path, 'format'), image.format)
    // Last: what has a record is whole.
    writePrivate(join(path, 'record.json'), image.record)
  }
}

function formatOf(path: string): { readonly format?: string } {
  const format = readIfThere(join(path, 'format'))
  return format === undefined ? {} : { format }
}

function markOf(image: string): SavedImage['unchanged'] {
  const { size, mtimeNs, ino } = statSync(image, { bigint: true })
  return { bytes: String(size), modifiedNs: String(mtimeNs), inode: String(ino) }
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    // Another filesystem, or the earlier archive is gone: then this fails too and names it.
    copyFileSync(from, to)
  }
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer)
  return hash.digest('hex')
}

function run([program, ...argv]: readonly [string, ...string[]]): Promise<number> {
  return exitOf(spawn(program, argv, { stdio: 'ignore' }))
}

function exitOf(child: ReturnType<typeof spawn>): Promise<number> {
  const exit = Promise.withResolvers<number>()
  child.once('error', exit.reject).once('close', (code) => exit.resolve(code ?? -1))
  return exit.promise
}
