// Do processes leave each other's records alone? The server and two agents, all with jobs of one driver.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createVirtualClock } from '../clock/virtual-clock.ts'
import { createTestApi } from '../../test/kit/api.ts'
import { createRandom } from '../clock/random.ts'
import { silentLog } from '../telemetry/log.ts'
import type { History } from './history.ts'
import { createHistory } from './history.ts'
import { historyOfJobs, ownedByJobs, ownedByNode, ownedByServer } from './history-owners.ts'

const about = (key: string) => ({
  actor: 'csi d',
  operation: 'provision',
  key,
  objects: [{ kind: 'PersistentVolumeClaim' as const, namespace: 'default', name: key }],
})

test('what one process is doing stays on record while the others start and go on', async () => {
  const clock = createVirtualClock()
  await using api = await createTestApi({ clock, random: createRandom(1) })
  const { client } = api
  const start = (owns: (actor: string) => boolean) => createHistory({ client, clock, log: silentLog, owns })
  const lives: readonly (readonly [string, () => History])[] = [
    ['server', () => start(ownedByServer)],
    ['n1', () => historyOfJobs(start(ownedByJobs('n1')), 'n1')],
    ['n2', () => historyOfJobs(start(ownedByJobs('n2')), 'n2')],
    ['node n1', () => start(ownedByNode('n1'))],
  ]
  await using first = lives[1]![1]()
  first.tell({ ...about('claim'), phase: 'Running', startedAt: clock.now() })
  await clock.advance(2_000)
  const others = lives.filter(([name]) => name !== 'n1').map(([, open]) => open())
  await clock.advance(120_000)
  const actors = async () => (await client.list('Operation')).items.map(({ spec }) => spec.actor)
  assert.deepEqual(await actors(), ['csi d on n1'])
  for (const each of others) await each[Symbol.asyncDispose]()

  await first[Symbol.asyncDispose]()
  await using _again = lives[1]![1]()
  await clock.advance(120_000)
  assert.deepEqual(await actors(), [], 'its own next life knows that nobody does it any more')
})
