// Does anything stay on a node when a driver's answers are not what it did? Two calls of one pod's life are answered OK
// without effect, refused, or carried out and answered with an error, in every pair. Then pod and claim are deleted.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '../../src/csi/faults.ts'
import { openMatrix, publishingBy } from '../kit/fault-matrix.ts'
import type { LifeCase } from '../kit/fault-matrix.ts'
import { claimRequest } from '../kit/objects.ts'

const calls = ['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'] as const

const answers: Readonly<Record<string, Fault>> = {
  'OK without effect': { kind: 'ignored' },
  refused: { kind: 'refused', status: 'FAILED_PRECONDITION' },
  'perhaps refused': { kind: 'refused', status: 'UNAVAILABLE' },
  'done, answer lost': { kind: 'answerLost', status: 'UNAVAILABLE' },
  'done, answered with a final error': { kind: 'answerLost', status: 'INTERNAL' },
}

interface Wrong {
  readonly call: (typeof calls)[number]
  readonly answer: string
}
/** The heavy suite takes every pair. Here: two answers to one call that mounts, of the kinds that leave the most in doubt. */
const everything = process.env['HAWSER_HEAVY'] === '1'
const doubtful = ['OK without effect', 'refused', 'done, answer lost']
const isDoubtful = ({ call, answer }: Wrong) => !/Un/.test(call) && doubtful.includes(answer)
const isChosen = (first: Wrong, then: Wrong) =>
  everything || (first.call === then.call && isDoubtful(first) && isDoubtful(then))
const wrongs: readonly Wrong[] = calls.flatMap((call) => Object.keys(answers).map((answer) => ({ call, answer })))

/** The first call of `first` goes wrong, and then the next ones of `then`. */
function chooser(first: Wrong, then: Wrong) {
  let firstStruck = false
  // What mounts is given up with the pod; what unmounts is asked until it succeeds, so that it must some day.
  let left = /Un/.test(then.call) ? 3 : Infinity
  return (rpc: string): Fault | undefined => {
    if (rpc === first.call && !firstStruck) {
      firstStruck = true
      return answers[first.answer]
    }
    return rpc === then.call && left-- > 0 ? answers[then.answer] : undefined
  }
}

function claimed(name: string, mode: 'Filesystem' | 'Block'): LifeCase {
  const provisioned = { storageClassName: 'model', resources: { requests: { storage: '1Gi' } } }
  return {
    name,
    raw: mode === 'Block',
    volume: (life) => ({ name: 'v', persistentVolumeClaim: { claimName: `claim-${life}` } }),
    objects: (life) => ({
      claim: claimRequest(`claim-${life}`, { ...provisioned, accessModes: ['ReadWriteOnce'], volumeMode: mode }),
    }),
  }
}

/** A driver that publishes the staging directory, whether anything is mounted there or not. */
const unasking = publishingBy(({ mounts }, { stagingTargetPath: source, targetPath: target }, signal) =>
  mounts.bind({ source, target }, signal),
)

const cases: readonly LifeCase[] = [
  claimed('a filesystem', 'Filesystem'),
  { ...claimed('what was perhaps not staged', 'Filesystem'), driver: unasking },
  claimed('a device', 'Block'),
]

for (const each of cases) {
  test(`${each.name} leaves nothing, whatever two answers of its driver are`, async () => {
    const leaks: string[] = []
    let matrix = await openMatrix(each)
    assert.deepEqual(matrix.first.left, [], 'a life without trouble')
    for (const first of wrongs) {
      for (const then of wrongs) {
        if (!isChosen(first, then)) continue
        const { left } = await matrix.live({ of: 'answers', byForce: false, choose: chooser(first, then) })
        if (left.length === 0) continue
        leaks.push(`${first.call} ${first.answer}, ${then.call} ${then.answer}: ${left.join(', ')}`)
        await matrix.stop()
        matrix = await openMatrix(each)
      }
    }
    await matrix.stop()
    assert.deepEqual(leaks, [])
  })
}
