import assert from 'node:assert/strict'
import test from 'node:test'
import { createIntake } from './intake.ts'

test('so many begin in one turn, the others in the next turns, in the order in which they came', async () => {
  const { begin, begun, turn } = bench(2)
  for (const name of ['a', 'b', 'c', 'd', 'e']) begin(name)
  await turn(2)
  assert.deepEqual(begun, ['a', 'b'])
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c', 'd'])
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'e'])
})

test('nobody overtakes those who wait', async () => {
  const { begin, begun, turn } = bench(1)
  begin('a')
  begin('b')
  await turn(2)
  begin('c')
  await turn()
  assert.deepEqual(begun, ['a', 'b'])
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c'])
})

test('who comes alone begins after one turn of the loop, and nothing is planned when all is quiet', async () => {
  const { begin, begun, turn, planned } = bench(8)
  begin('a')
  await turn()
  assert.deepEqual(begun, [])
  await turn()
  assert.deepEqual(begun, ['a'])
  begin('b')
  await settled()
  assert.deepEqual(begun, ['a', 'b'], 'in a busy moment at once')
  await turn(2)
  assert.equal(planned(), 0)
})

test('while connections come in nobody begins; then those who waited do, together', async () => {
  const { intake, begin, begun, turn, planned } = bench(8)
  begin('a')
  for (const name of ['b', 'c', 'd']) {
    intake.welcome()
    await turn()
    begin(name)
  }
  assert.deepEqual(begun, [])
  await turn()
  assert.deepEqual(begun, ['a', 'b', 'c', 'd'])
  await turn(2)
  assert.equal(planned(), 0)
})

test('whoever keeps coming in does not keep the others waiting', async () => {
  const { intake, begin, begun, turn } = bench(1)
  for (const name of ['a', 'b', 'c']) begin(name)
  for (let count = 0; count < 64; count++) {
    intake.welcome()
    await turn()
  }
  assert.deepEqual(begun, [])
  for (const expected of ['a', 'ab', 'abc']) {
    intake.welcome()
    await turn()
    assert.equal(begun.join(''), expected, 'one after the other, whoever comes in meanwhile')
  }
})

function bench(perTurn: number) {
  let runs: (() => void)[] = []
  const intake = createIntake(perTurn, (run) => void runs.push(run))
  const begun: string[] = []
  return {
    intake,
    begun,
    begin: (name: string) => void Promise.resolve(intake.begin()).then(() => begun.push(name)),
    planned: () => runs.length,
    async turn(count = 1) {
      for (let turns = 0; turns < count; turns++) {
        const now = runs
        runs = []
        for (const run of now) run()
        await settled()
      }
    },
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
