// Which tests run when? `quick` is everything that needs no root and little time; `heavy` is the real world:
// Linux mounts, drivers, kubectl, conformance, long simulations. Usage: node tools/test.ts quick|heavy [folder …]
import { spawnSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { requirePinnedNode } from './runtime.ts'

/** Folders of test/ that need root, real processes, or minutes. They run in this order, each on its own. */
const heavyFolders = [
  'store',
  'linux',
  'csi',
  'conformance',
  'node-conformance',
  'kubectl',
  'fuzz',
  'cli',
  'docs',
  'package',
  'faults',
]
/** Quick suites that grow with HAWSER_HEAVY=1: more seeds, more steps. */
const growingFolders = ['claims', 'sim']

requirePinnedNode()
const [suite = 'quick', ...only] = process.argv.slice(2)
const root = join(import.meta.dirname, '..')
process.chdir(root)

const failures = suite === 'quick' ? quick() : suite === 'heavy' ? heavy() : usage()
process.exit(failures > 0 ? 1 : 0)

function quick(): number {
  const heavy = new Set(heavyFolders.map((folder) => `test/${folder}/`))
  const files = globSync(['src/**/*.test.ts', 'tools/**/*.test.ts', 'test/**/*.test.ts'])
    .filter((file) => ![...heavy].some((folder) => file.startsWith(folder)))
    .toSorted()
  return run('quick', files, {})
}

function heavy(): number {
  const folders = only.length > 0 ? only : [...heavyFolders, ...growingFolders]
  return folders
    .filter((folder) => existsSync(`test/${folder}`))
    .map((folder) =>
      run(folder, globSync(`test/${folder}/**/*.test.ts`).toSorted(), { HAWSER_HEAVY: '1' }, 1, 1_500_000),
    )
    .reduce((sum, failed) => sum + failed, 0)
}

function run(
  title: string,
  files: readonly string[],
  env: Record<string, string>,
  concurrency = 2,
  timeoutMs = 120_000,
): number {
  if (files.length === 0) return 0
  process.stdout.write(`# ${title}: ${files.length} files\n`)
  const result = spawnSync(
    process.execPath,
    [
      '--test',
      `--test-timeout=${timeoutMs}`,
      '--test-force-exit',
      `--test-concurrency=${concurrency}`,
      '--test-reporter=./tools/quiet-reporter.ts',
      ...files,
    ],
    { stdio: 'inherit', env: { NODE_COMPILE_CACHE: join(root, '.cache/compile'), ...process.env, ...env } },
  )
  return result.status === 0 ? 0 : 1
}

function usage(): number {
  process.stderr.write('usage: node tools/test.ts quick | heavy [folder …]\n')
  return 1
}
