import assert from 'node:assert/strict'
import test from 'node:test'
import { createIntake } from './intake.ts'

test('so many begin at once, the others in the next turns, in the order in which they came', async () => {
  const { intake, turn } = bench(2)
  const begun: string[] = []
  const begin = async (name: string) => {
    await intake.begin()
    begun.push(name)
  }
  const all = ['a', 'b', 'c', 'd', 'e'].map(begin)
  await settled()
  assert.deepEqual(begun, ['a', 'b'])
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c', 'd'])
  await turn()
  await Promise.all(all)
  assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'e'])
})

test('nobody overtakes those who wait', async () => {
  const { intake, turn } = bench(1)
  const begun: string[] = []
  const begin = async (name: string) => {
    await intake.begin()
    begun.push(name)
  }
  void begin('a')
  void begin('b')
  await settled()
  await turn()
  void begin('c')
  await settled()
  assert.deepEqual(begun, ['a', 'b'])
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c'])
})

test('who comes alone begins at once, and nothing is planned when all is quiet', async () => {
  const { intake, turn, planned } = bench(1)
  assert.equal(intake.begin(), undefined)
  await turn()
  assert.equal(planned(), 0)
  assert.equal(intake.begin(), undefined)
})

function bench(perTurn: number) {
  let runs: (() => void)[] = []
  return {
    intake: createIntake(perTurn, (run) => void runs.push(run)),
    planned: () => runs.length,
    async turn() {
      const now = runs
      runs = []
      for (const run of now) run()
      await settled()
    },
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
