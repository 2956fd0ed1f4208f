// Which functions of which source files ran while something was going on? Asked of V8, in this process.
import { Session } from 'node:inspector/promises'
import type { Profiler } from 'node:inspector'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Source file, relative to the repository → `name:offset` of each function that ran. */
export type Ran = ReadonlyMap<string, ReadonlySet<string>>

export interface Coverage {
  /** What ran since the last call; the initialisation of modules does not count. */
  take(): Promise<Ran>
  [Symbol.dispose](): void
}

export async function startCoverage(root: string): Promise<Coverage> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return {
    async take() {
      const { result } = await session.post('Profiler.takePreciseCoverage')
      return new Map(result.flatMap((script) => ranIn(root, script)))
    },
    [Symbol.dispose]: () => session.disconnect(),
  }
}

function ranIn(root: string, { url, functions }: Profiler.ScriptCoverage): [string, ReadonlySet<string>][] {
  if (!url.startsWith('file:')) return []
  const file = relative(root, fileURLToPath(url))
  if (!file.startsWith('src/')) return []
  const names = functions
    // The function that is the module itself begins at 0; it runs when the file is loaded.
    .filter(({ ranges }) => ranges[0]!.startOffset > 0 && ranges[0]!.count > 0)
    .map(({ functionName, ranges }) => `${functionName}:${ranges[0]!.startOffset}`)
  return names.length > 0 ? [[file, new Set(names)]] : []
}

/** What ran here and not there, function by function. */
export function without(ran: Ran, other: Ran): Ran {
  const rest = [...ran].map(([file, names]) => [file, names.difference(other.get(file) ?? new Set())] as const)
  return new Map(rest.filter(([, names]) => names.size > 0))
}
