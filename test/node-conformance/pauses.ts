// Where can a case be looked at? Between its steps. Each step but the first begins with a pause: the runner writes a file that
// says where it is, and goes on when the file is gone. The last step takes everything away.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Pause {
  /** `configmap-missing` */
  readonly name: string
  /** The step that has just been played: `failed`. */
  readonly step: string
  readonly namespace: string
}

interface Case {
  readonly steps: readonly { readonly name: string; readonly do?: readonly object[] }[]
}

/** Puts a pause before each step but the first of every case below the directory. */
export function insertPauses(directory: string): void {
  const [cases, paused] = [join(directory, 'cases'), pausesIn(directory)]
  mkdirSync(paused)
  for (const file of readdirSync(cases)) {
    const given = JSON.parse(readFileSync(join(cases, file), 'utf8')) as Case
    const name = file.replace(/\.json$/, '')
    const steps = given.steps.map((step, index) => {
      const before = given.steps[index - 1]
      if (!before) return step
      const path = join(paused, `${name}-${index}`)
      const content = JSON.stringify({ name, step: before.name, namespace: '${ns}' })
      return { ...step, do: [{ file: { path, content } }, { await: { gone: path } }, ...(step.do ?? [])] }
    })
    writeFileSync(join(cases, file), JSON.stringify({ ...given, steps }))
  }
}

const pausesIn = (directory: string) => join(directory, 'pauses')

/** Calls `look` at every pause, however many at a time, and lets the runner go on afterwards. Ends with the signal. */
export async function atEachPause(
  directory: string,
  look: (pause: Pause) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const looks: Promise<void>[] = []
  const seen = new Set<string>()
  while (!signal.aborted) {
    for (const file of readdirSync(pausesIn(directory))) {
      const path = join(pausesIn(directory), file)
      const text = seen.has(file) ? '' : readFileSync(path, 'utf8')
      if (!text.endsWith('}')) continue // seen, or being written
      seen.add(file)
      looks.push(look(JSON.parse(text) as Pause).finally(() => rmSync(path))) // written above
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await Promise.all(looks)
}
