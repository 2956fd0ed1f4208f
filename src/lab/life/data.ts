// Is the data still there? A pattern of files that its seed tells again, and a digest of what lies in a directory.
import { createHash } from 'node:crypto'
import { createRandom } from '../../clock/random.ts'
import { must } from '../finding.ts'
import type { Lab } from '../lab.ts'

const largeBytes = 64 * 1024

/** Path → content. Equal seeds give equal files. */
function patternOf(seed: string): ReadonlyMap<string, Uint8Array> {
  const random = createRandom(seed)
  return new Map([
    ['large.bin', random.bytes(largeBytes)],
    ['deep/er/small.txt', Buffer.from(`${seed} ${random.uid()}\n`)],
    ['empty', new Uint8Array()],
  ])
}

/** Writes the pattern, durably: what is read back later went to the storage. */
export async function writePattern(lab: Lab, directory: string, seed: string): Promise<void> {
  const { files } = lab.host
  for (const [path, content] of patternOf(seed)) {
    const parent = `${directory}/${path}`.replace(/\/[^/]*$/, '')
    await files.mkdirAll(parent, 0o755, lab.signal)
    await files.writeFile(`${directory}/${path}`, content, { mode: 0o644, durable: true }, lab.signal)
  }
}

/** What a filesystem makes for itself is not data. */
const ownOfFilesystems: ReadonlySet<string> = new Set(['lost+found'])

async function digestsBelow(lab: Lab, directory: string, prefix = ''): Promise<Map<string, string>> {
  const { files } = lab.host
  const found = new Map<string, string>()
  for (const name of (await files.readDir(directory, lab.signal)).toSorted()) {
    if (prefix === '' && ownOfFilesystems.has(name)) continue
    const [path, shown] = [`${directory}/${name}`, `${prefix}${name}`]
    if ((await files.lstat(path, lab.signal)).kind === 'directory')
      for (const [below, digest] of await digestsBelow(lab, path, `${shown}/`)) found.set(below, digest)
    else found.set(shown, digestOf(await files.readFile(path, lab.signal)))
  }
  return found
}

const digestOf = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

/** The directory holds this pattern and nothing else. `when` completes "… after it was mounted again". */
export async function mustHoldPattern(lab: Lab, directory: string, seed: string, when: string): Promise<void> {
  const found = await digestsBelow(lab, directory)
  const wanted = patternOf(seed)
  const missing = [...wanted.keys()].filter((path) => !found.has(path))
  must(missing.length === 0, `data is lost ${when}: there is no ${missing.join(', ')}`)
  const changed = [...wanted].filter(([path, content]) => found.get(path) !== digestOf(content)).map(([path]) => path)
  must(changed.length === 0, `data has changed ${when}: ${changed.join(', ')}`)
  const strange = [...found.keys()].filter((path) => !wanted.has(path))
  must(strange.length === 0, `there is data of somebody else ${when}: ${strange.slice(0, 5).join(', ')}`)
}

export async function mustBeEmpty(lab: Lab, directory: string, what: string): Promise<void> {
  const found = [...(await digestsBelow(lab, directory)).keys()]
  must(found.length === 0, `${what} holds data: ${found.slice(0, 5).join(', ')}`)
}
