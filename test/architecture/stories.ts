// Which files does each story of ARCHITECTURE.md name, and which of those that ran does it leave out?
import { join } from 'node:path'
import { without } from './coverage.ts'
import type { Ran } from './coverage.ts'

/** Below this number of functions a file only heard of it: a listener, a check that found nothing to do. */
const fewestFunctions = 4

/** Named once for all stories, in "The one idea" and "The tree": data, time, log, the loop, and what Kubernetes calls apimachinery. */
const everywhere = [
  'src/api/',
  'src/clock/',
  'src/telemetry/',
  'src/loop/',
  'src/store/',
  'src/apiserver/patch/',
  'src/apiserver/objects/',
]

/** The models that the test runs on instead of a machine and a driver. */
const models = [
  'src/sim/',
  'src/host/model/',
  'src/csi/model/',
  'src/csi/kit/',
  'src/node/runtime/model',
  'src/client/in-process',
]

/** What replaces the models on a real machine; needs root, and test/linux walks it. */
const machines = ['src/host/linux/', 'src/node/runtime/process']

const startsWithOne = (file: string, prefixes: readonly string[]) => prefixes.some((prefix) => file.startsWith(prefix))

export interface Stories {
  /** Links in the text above the first story: files that every story may pass. */
  readonly shared: ReadonlySet<string>
  /** Title of a story → what its text links to, relative to the repository. A link to a folder stands for all below it. */
  readonly byTitle: ReadonlyMap<string, ReadonlySet<string>>
}

export function storiesOf(architecture: string): Stories {
  const [, section = ''] = architecture.split(/^## Five stories$/m)
  const [body = ''] = section.split(/^## /m)
  const [above = '', ...parts] = body.split(/^\*\*(.+)\*\*$/m)
  const pairs = parts.flatMap((part, index) => (index % 2 === 0 ? [[part, linksIn(parts[index + 1]!)] as const] : []))
  return { shared: linksIn(above), byTitle: new Map(pairs) }
}

const linksIn = (text: string): ReadonlySet<string> =>
  new Set(Array.from(text.matchAll(/\]\((src\/[^)]+)\)/g), ([, link]) => join(link!)))

export interface Difference {
  /** Did work, and the story does not name it. */
  readonly add: readonly string[]
  /** Named, and did none. */
  readonly drop: readonly string[]
}

/** What also runs while nothing happens (`idle`) is no work, but a named file may consist of nothing else. */
export function compare(stories: Stories, title: string, ran: Ran, idle: Ran): Difference {
  const named = stories.byTitle.get(title) ?? new Set<string>()
  return {
    add: [...without(ran, idle)]
      .filter(([file, names]) => names.size >= fewestFunctions && !startsWithOne(file, [...everywhere, ...models]))
      .filter(([file]) => ![...named, ...stories.shared].some((link) => covers(link, file)))
      .map(([file, names]) => `${file} (${names.size} functions ran)`)
      .toSorted(),
    drop: idleLinks(named, ran.keys()),
  }
}

/** Links to files of which none ran. */
export function idleLinks(links: Iterable<string>, files: Iterable<string>): readonly string[] {
  const all = [...files]
  const isIdle = (link: string) => !startsWithOne(link, machines) && !all.some((file) => covers(link, file))
  return [...links].filter(isIdle).toSorted()
}

const covers = (link: string, file: string) => link === file || file.startsWith(`${link}/`)
