// Does `hawser why` name the right cause here? Facts are gathered through the API and explained exactly as the command does.
import assert from 'node:assert/strict'
import { kinds } from '../../src/api/kinds.ts'
import type { Client } from '../../src/client/client.ts'
import type { Cause } from '../../src/why/causes.ts'
import { explain } from '../../src/why/explain.ts'
import type { Explanation } from '../../src/why/explain.ts'
import type { SubjectKind, WhySubject } from '../../src/why/facts.ts'
import { gatherFacts } from '../../src/why/gather.ts'

/** Where an API is, and what time it is there; every world, cluster and simulation of the suites has both. */
export interface Asked {
  readonly client: Client
  readonly clock: { now(): number }
}

/** `pod/web`, `pvc/shop/data`, `pv/v1`, `va/x`, `vac/gold`, `node/a`; without a namespace it is `default`. */
export async function why({ client, clock }: Asked, words: string): Promise<Explanation> {
  return explain(await gatherFacts(client, subjectOf(words), clock.now()))
}

/** The cause is the one that blocks, and somebody who reads it is given a next command. */
export async function assertWhy(asked: Asked, words: string, cause: Cause): Promise<Explanation> {
  const explanation = await why(asked, words)
  const { blocked } = explanation
  assert.equal(blocked?.cause, cause, `why ${words}: ${JSON.stringify(explanation, null, 2)}`)
  assert.ok(blocked.hints.length > 0, `why ${words}: no command is named that helps`)
  return explanation
}

/** On real time: the first try may still run, and the history is written behind the work. */
export async function untilWhy(client: Client, words: string, cause: Cause, seconds = 30): Promise<Explanation> {
  const asked: Asked = { client, clock: { now: Date.now } }
  for (const end = Date.now() + seconds * 1_000; Date.now() < end;) {
    if ((await why(asked, words)).blocked?.cause === cause) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return assertWhy(asked, words, cause)
}

/** Nothing waits: neither a cause nor a step that is not done. */
export async function assertHealthy(asked: Asked, words: string): Promise<void> {
  const explanation = await why(asked, words)
  assert.deepEqual(
    [explanation.verdict, explanation.blocked?.cause],
    ['healthy', undefined],
    `why ${words}: ${JSON.stringify(explanation, null, 2)}`,
  )
}

const subjectKinds: Readonly<Record<string, SubjectKind>> = {
  pod: 'Pod',
  pvc: 'PersistentVolumeClaim',
  pv: 'PersistentVolume',
  va: 'VolumeAttachment',
  vac: 'VolumeAttributesClass',
  vs: 'VolumeSnapshot',
  node: 'Node',
}

function subjectOf(words: string): WhySubject {
  const [short = '', ...rest] = words.split('/')
  const kind = subjectKinds[short]
  assert.ok(kind, `${words} names nothing that why explains`)
  const name = rest.pop() ?? ''
  return kinds[kind].namespaced ? { kind, namespace: rest[0] ?? 'default', name } : { kind, name }
}
