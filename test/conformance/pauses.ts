// Where can a recorded scenario be looked at? After each of its steps. The scenarios are copied with a pause after every step:
// the runner makes a namespace that says where it is, and goes on when an event in it says that the look is over.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HttpClient } from '../../src/client/http.ts'

export interface Pause {
  /** `043-named-volume-too-small` */
  readonly scenario: string
  /** `2: a larger claim` */
  readonly step: string
  /** The prefix of everything that this play of the scenario made. */
  readonly id: string
}

interface Scenario {
  readonly steps: readonly { readonly title?: string }[]
  readonly ignoreEvents?: readonly string[]
}
interface Expected {
  readonly steps: readonly object[]
}

const mark = 'hawser.dev/paused-scenario'
const reasonOf = (index: number) => `Looked${index}`

/** Writes the scenarios of a suite, and what is expected of them, with pauses; answers how many steps each has. */
export function writeWithPauses(suite: string, directory: string): ReadonlyMap<string, number> {
  const steps = new Map<string, number>()
  for (const folder of ['scenarios', 'expected']) mkdirSync(join(directory, folder))
  for (const file of readdirSync(join(suite, 'scenarios'))) {
    const scenario = JSON.parse(readFileSync(join(suite, 'scenarios', file), 'utf8')) as Scenario
    const expected = JSON.parse(readFileSync(join(suite, 'expected', file), 'utf8')) as Expected
    const name = file.replace(/\.json$/, '')
    const reasons = scenario.steps.map((_, index) => reasonOf(index))
    const paused = scenario.steps.flatMap((step, index) => [step, pauseStep(name, index, step.title)])
    const known = expected.steps.flatMap((step, index) => [step, pauseOutcome(index)])
    const ignoreEvents = [...(scenario.ignoreEvents ?? []), ...reasons]
    writeFileSync(join(directory, 'scenarios', file), JSON.stringify({ ...scenario, ignoreEvents, steps: paused }))
    writeFileSync(join(directory, 'expected', file), JSON.stringify({ ...expected, steps: known }))
    steps.set(name, scenario.steps.length)
  }
  return steps
}

function pauseStep(scenario: string, index: number, title: string | undefined): object {
  const annotations = { [mark]: JSON.stringify({ scenario, step: `${index + 1}: ${title ?? ''}` }) }
  const metadata = { name: `{{id}}-pause-${index}`, annotations }
  const actions = [
    { create: { apiVersion: 'v1', kind: 'Namespace', metadata } },
    { wait: [{ event: reasonOf(index) }] },
  ]
  return { title: 'pause', do: actions, settle: false, timeout: 120_000 }
}

function pauseOutcome(index: number): object {
  return { step: 'pause', results: [{ do: `create Namespace/{{id}}-pause-${index}`, code: 201 }] }
}

/** Calls `look` at every pause, however many at a time, and lets the runner go on afterwards. Ends with the signal. */
export async function atEachPause(
  client: HttpClient,
  look: (pause: Pause) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const looks: Promise<void>[] = []
  const seen = new Set<string>()
  while (!signal.aborted) {
    const { items } = await client.list('Namespace')
    for (const { metadata } of items) {
      const text = metadata.annotations?.[mark]
      const name = metadata.name ?? ''
      if (text === undefined || seen.has(name)) continue
      seen.add(name)
      const [, id = '', index = ''] = /^(.*)-pause-(\d+)$/.exec(name) ?? []
      const pause: Pause = { ...(JSON.parse(text) as Omit<Pause, 'id'>), id } // written above
      looks.push(look(pause).finally(() => goOn(client, name, Number(index))))
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await Promise.all(looks)
}

async function goOn(client: HttpClient, namespace: string, index: number): Promise<void> {
  await client.create('Event', {
    metadata: { name: 'looked', namespace },
    involvedObject: { kind: 'Namespace', name: namespace, namespace },
    reason: reasonOf(index),
    type: 'Normal',
  })
}
