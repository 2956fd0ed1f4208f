// Which tests run when? `quick` is everything that needs no root and little time; `heavy` is the real world:
// Linux mounts, drivers, kubectl, conformance, long simulations. Usage: node tools/test.ts quick|heavy [folder …]
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { requirePinnedNode } from './runtime.ts'

/** Folders of test/ that need root, real processes, or minutes. */
const heavyFolders = [
  'conformance',
  'node-conformance',
  'compat',
  'store',
  'linux',
  'csi',
  'fuzz',
  'cli',
  'docs',
  'package',
]
/** Quick suites that grow with HAWSER_HEAVY=1: more seeds, more steps. */
const growingFolders = ['claims', 'sim']
/** No file may take longer, so that one that hangs does not take the others along. */
const longestFileMs = 12 * 60_000

interface Counts {
  passed: number
  failed: number
  skipped: number
}

requirePinnedNode()
const [suite = 'quick', ...only] = process.argv.slice(2)
const root = join(import.meta.dirname, '..')
process.chdir(root)
const failed = suite === 'quick' ? quick() : suite === 'heavy' ? heavy() : usage()
process.exit(failed ? 1 : 0)

function quick(): boolean {
  const files = globSync(['src/**/*.test.ts', 'tools/**/*.test.ts', 'test/**/*.test.ts'])
    .filter((file) => !heavyFolders.some((folder) => file.startsWith(`test/${folder}/`)))
    .toSorted()
  process.stdout.write(`# quick: ${files.length} files\n`)
  const { stdout, status } = spawnSync(process.execPath, runner(files, 2, 120_000), {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: environment(),
  })
  process.stdout.write(stdout)
  if (status === 0) return false
  const suspects = new Set(Array.from(stdout.matchAll(/^FAILED (\S+?\.test\.ts)/gm), ([, file]) => file!))
  return suspects.size === 0 || [...suspects].filter((file) => !passesOnceMore(file)).length > 0
}

/** A second failure counts; a success is called flaky, aloud. */
function passesOnceMore(file: string): boolean {
  process.stdout.write(`# once more: ${file}\n`)
  const passes = runFile(file, {}).failed === 0
  if (passes) process.stdout.write(`# FLAKY: ${file} failed, then passed\n`)
  return passes
}

/** File by file. What fails is run once more: a second failure counts, a success is called flaky, aloud. */
function heavy(): boolean {
  const folders = only.length > 0 ? only : [...heavyFolders, ...growingFolders]
  const files = folders.flatMap((folder) => globSync(`test/${folder}/**/*.test.ts`).toSorted())
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  const flaky: string[] = []
  for (const file of files) {
    let counts = runFile(file)
    if (counts.failed > 0) {
      process.stdout.write(`# once more: ${file}\n`)
      counts = runFile(file)
      if (counts.failed === 0) flaky.push(file)
    }
    for (const name of ['passed', 'failed', 'skipped'] as const) total[name] += counts[name]
  }
  for (const file of flaky) process.stdout.write(`# FLAKY: ${file} failed, then passed\n`)
  process.stdout.write(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`)
  return total.failed > 0
}

function runFile(file: string, env: Record<string, string> = { HAWSER_HEAVY: '1' }): Counts {
  const start = performance.now()
  const { stdout, status } = spawnSync(process.execPath, runner([file], 1, longestFileMs), {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    timeout: longestFileMs + 30_000,
    killSignal: 'SIGKILL',
    env: { ...environment(), ...env },
  })
  const [, passed, failures, skipped] = /^(\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(stdout) ?? []
  const counts = { passed: Number(passed ?? 0), failed: Number(failures ?? 1), skipped: Number(skipped ?? 0) }
  if (status !== 0 && counts.failed === 0) counts.failed = 1
  const rest = stdout.split('\n').filter((line) => line.trim() !== '' && !/^(in [\d.]+ s|\d+ passed, .*)$/.test(line))
  if (rest.length > 0) process.stdout.write(`${rest.join('\n')}\n`)
  const seconds = ((performance.now() - start) / 1_000).toFixed(0)
  process.stdout.write(
    `# ${file}: ${counts.passed} ok, ${counts.failed} not, ${counts.skipped} left out, ${seconds} s\n`,
  )
  return counts
}

function runner(files: readonly string[], concurrency: number, timeoutMs: number): string[] {
  return [
    '--test',
    `--test-timeout=${timeoutMs}`,
    `--test-concurrency=${concurrency}`,
    '--test-reporter=./tools/quiet-reporter.ts',
    ...files,
  ]
}

function environment(): NodeJS.ProcessEnv {
  return { NODE_COMPILE_CACHE: join(root, '.cache/compile'), ...process.env }
}

function usage(): boolean {
  process.stderr.write('usage: node tools/test.ts quick | heavy [folder …]\n')
  return true
}
