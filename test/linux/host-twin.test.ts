// Do the model and the real machine answer alike? Random sequences of calls on both; every answer and the final picture are
// compared. Needs root. A failure prints its seed: HAWSER_SEED=… repeats it, HAWSER_RUNS=… makes it longer.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Random } from '../../src/clock/random.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import type { Host } from '../../src/host/host.ts'
import { HostError } from '../../src/host/host-error.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { picture, signal } from '../kit/plugin-fixture.ts'
import { openPlace } from '../kit/scratch-host.ts'

type Step = (host: Host, root: string) => Promise<unknown>
interface Named {
  readonly text: string
  readonly run: Step
}

const names = ['a', 'b', 'c']
const texts = ['', 'x', 'yy']

function anyPath(random: Random): string {
  return Array.from({ length: 1 + random.below(3) }, () => random.pick(names)).join('/')
}

function anyStep(random: Random): Named {
  const [one, two] = [anyPath(random), anyPath(random)]
  const text = random.pick(texts)
  const linkTarget = random.pick([two, `../${two}`, '.', 'b'])
  const mode = random.pick([0o755, 0o700, 0o2770, 0o644])
  const step = (name: string, run: Step): Named => ({ text: name, run })
  const at = (root: string, path: string) => join(root, path)
  const choices: readonly Named[] = [
    step(`mkdir ${one}`, ({ files }, root) => files.mkdir(at(root, one), mode, signal)),
    step(`mkdirAll ${one}`, ({ files }, root) => files.mkdirAll(at(root, one), mode, signal)),
    step(`write ${one}`, ({ files }, root) => files.writeFile(at(root, one), text, { mode: 0o644 }, signal)),
    step(`write exclusively ${one}`, ({ files }, root) =>
      files.writeFile(at(root, one), text, { mode: 0o600, exclusive: true }, signal),
    ),
    step(`read ${one}`, ({ files }, root) => files.readText(at(root, one), signal)),
    step(`link ${one} -> ${linkTarget}`, ({ files }, root) => files.symlink(linkTarget, at(root, one), signal)),
    step(`rename ${one} ${two}`, ({ files }, root) => files.rename(at(root, one), at(root, two), signal)),
    step(`rmdir ${one}`, ({ files }, root) => files.rmdir(at(root, one), signal)),
    step(`unlink ${one}`, ({ files }, root) => files.unlink(at(root, one), signal)),
    step(`remove ${one}`, ({ files }, root) => files.remove(at(root, one), signal)),
    step(`removeTree ${one}`, ({ files }, root) => files.removeTree(at(root, one), signal)),
    step(`removeEmptyTree ${one}`, ({ files }, root) => files.removeEmptyTree(at(root, one), signal)),
    step(`list ${one}`, async ({ files }, root) => (await files.readDir(at(root, one), signal)).sort()),
    step(`stat ${one}`, async ({ files }, root) => kindAndMode(await files.stat(at(root, one), signal))),
    step(`lstat ${one}`, async ({ files }, root) => kindAndMode(await files.lstat(at(root, one), signal))),
    step(`exists ${one}`, ({ files }, root) => files.exists(at(root, one), signal)),
    step(`chmod ${one}`, ({ files }, root) => files.chmod(at(root, one), mode, signal)),
    step(`group ${one}`, ({ files }, root) => files.lchown(at(root, one), -1, 5, signal)),
    step(`open ${one} beneath`, async ({ files }, root) => {
      await using opened = await files.openBeneath(root, one, signal)
      return opened.stat.kind
    }),
    step(`mkdir ${one} beneath`, ({ files }, root) => files.mkdirBeneath(root, one, 0o755, signal)),
    step(`tmpfs ${one}`, ({ mounts }, root) =>
      mounts.mount({ source: 'tmpfs', target: at(root, one), type: 'tmpfs', options: ['size=1m'] }, signal),
    ),
    step(`bind ${one} ${two}`, ({ mounts }, root) =>
      mounts.bind({ source: at(root, one), target: at(root, two) }, signal),
    ),
    step(`bind read-only ${one} ${two}`, ({ mounts }, root) =>
      mounts.bind({ source: at(root, one), target: at(root, two), readOnly: true }, signal),
    ),
    step(`unmount ${one}`, ({ mounts }, root) => mounts.unmount(at(root, one), {}, signal)),
    step(`is ${one} mounted`, ({ mounts }, root) => mounts.isMountPoint(at(root, one), signal)),
    step(`references ${one}`, async ({ mounts }, root) =>
      (await mounts.references(at(root, one), signal)).map((path) => path.slice(root.length)).sort(),
    ),
  ]
  return random.pick(choices)
}

function kindAndMode({
  kind,
  mode,
  gid,
}: {
  readonly kind: string
  readonly mode: number
  readonly gid: number
}): string {
  return kind === 'symlink' ? kind : `${kind} ${mode.toString(8)} ${gid}`
}

async function answerOf(step: Named, host: Host, root: string): Promise<string> {
  try {
    return JSON.stringify((await step.run(host, root)) ?? 'done')
  } catch (error) {
    assert.ok(error instanceof HostError, String(error))
    return error.code
  }
}

async function unmountEverything(host: Host, root: string): Promise<void> {
  const below = async () =>
    (await host.mounts.list(signal)).map(({ mountPoint }) => mountPoint).filter((path) => path.startsWith(`${root}/`))
  for (let left = await below(); left.length > 0; left = await below()) {
    for (const path of left.sort((one, other) => other.length - one.length))
      await host.mounts.unmount(path, { lazy: true }, signal)
  }
}

test('the model and Linux answer random calls alike', { timeout: 120_000 }, async () => {
  const firstSeed = Number(process.env['HAWSER_SEED'] ?? 1)
  const runs = Number(process.env['HAWSER_RUNS'] ?? 60)
  await using place = openPlace()
  for (let seed = firstSeed; seed < firstSeed + runs; seed += 1) {
    // Links may lead out of the root by one step; what is made there must not be seen by the next seed.
    const root = join(place.root, `s${seed}`, 'root')
    const model = createModelHost({ clock: createVirtualClock() })
    for (const host of [model, place.host]) await host.files.mkdirAll(root, 0o755, signal)
    const random = createRandom(seed)
    const history: string[] = []
    let comparable = true
    try {
      for (let count = 0; count < 60 && comparable; count += 1) {
        const step = anyStep(random)
        const [expected, actual] = [await answerOf(step, place.host, root), await answerOf(step, model, root)]
        history.push(`${step.text} = ${expected}`)
        // What a deletion that was stopped has deleted before, and what stopped it first, depends on the order of entries,
        // which is nobody's promise: only that both were stopped is compared.
        comparable = !(step.text.startsWith('remove') && expected.startsWith('E') && actual.startsWith('E'))
        const message = `seed ${seed}, the model answers otherwise:\n${history.slice(-12).join('\n')}`
        if (comparable) assert.equal(actual, expected, message)
      }
      if (comparable) {
        assert.equal(
          (await picture(model, root)).join('\n'),
          (await picture(place.host, root)).join('\n'),
          `seed ${seed}: the pictures differ`,
        )
      }
    } finally {
      await unmountEverything(place.host, root)
    }
  }
})
