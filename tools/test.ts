// Which tests run when? `quick` is everything that needs no root and little time; `heavy` is the rest that CI runs: Linux
// mounts, drivers, kubectl, recorded outcomes, more seeds. `long` is too long for CI. A test that fails once fails the run.
// Usage: node tools/test.ts quick | heavy [folder …] | long
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { requirePinnedNode } from './runtime.ts'

/** Folders of test/ whose tests change the machine: mounts, loop devices, containers. One file of them runs at a time. */
const machineFolders = ['linux', 'node-conformance', 'compat', 'cli', 'docs', 'package']
/** Folders whose tests share nothing with other tests: they run beside those of the machine, and beside each other. */
const processorFolders = ['conformance', 'store', 'fuzz']
/** Quick files that grow with HAWSER_HEAVY=1: more seeds, more steps. The longest come first, so that they are not the last to end. */
const growingFiles = [
  'test/sim/*.test.ts',
  'test/stories/fault-matrix.test.ts',
  'test/stories/driver-answers.test.ts',
  'test/claims/model*.test.ts',
  'test/csi/seeds.test.ts',
  'test/lab/broken-drivers.test.ts',
  'test/why/since.test.ts',
]
/** These measure time, memory or processor use, and so run while nothing else does. */
const measuringFiles = [
  'test/fuzz/apiserver.fuzz.test.ts',
  'test/fuzz/load.test.ts',
  'test/linux/agent-figures.test.ts',
  'test/linux/hostile-volumes.test.ts',
  'test/store/size.test.ts',
]
/** What takes longer than CI may, started by hand. */
const longFolder = 'long'
/** No file may take longer, so that one that hangs does not take the others along. */
const longestFileMs = 12 * 60_000
/** No quick test may take longer; nor all unit tests together. */
const longestQuickMs = 120_000
const longestLongFileMs = 24 * 60 * 60_000

interface Counts {
  passed: number
  failed: number
  skipped: number
}

requirePinnedNode()
const [suite = 'quick', ...only] = process.argv.slice(2)
const root = join(import.meta.dirname, '..')
process.chdir(root)
const suites: Readonly<Record<string, () => Promise<boolean> | boolean>> = { quick, heavy, long }
const passed = await (suites[suite] ?? usage)()
process.exit(passed ? 0 : 1)

/** The unit tests in one process, which loads each module once; beside it the others, each file in a process of its own. */
async function quick(): Promise<boolean> {
  const notQuick = [...machineFolders, ...processorFolders, longFolder]
  const files = globSync(['src/**/*.test.ts', 'tools/**/*.test.ts', 'test/**/*.test.ts'])
    .filter((file) => !notQuick.some((folder) => file.startsWith(`test/${folder}/`)))
    .toSorted()
  process.stdout.write(`# quick: ${files.length} files\n`)
  const start = performance.now()
  const isUnit = (file: string) => file.startsWith('src/')
  const parts = [
    run(['--test-isolation=none', ...runner(files.filter(isUnit), 1, longestQuickMs)], longestQuickMs, {}),
    run(
      runner(
        files.filter((file) => !isUnit(file)),
        2,
        longestQuickMs,
      ),
      longestFileMs,
      {},
    ),
  ]
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { counts, lines } of await Promise.all(parts)) {
    add(total, counts)
    for (const line of lines) process.stdout.write(`${line}\n`)
  }
  process.stdout.write(`in ${((performance.now() - start) / 1_000).toFixed(1)} s\n`)
  return report(total)
}

/** Two files at a time, at most one of them on the machine; then what measures, alone. */
async function heavy(): Promise<boolean> {
  const isWanted = (file: string) => only.length === 0 || only.some((folder) => file.startsWith(`test/${folder}/`))
  const isMeasuring = (file: string) => measuringFiles.includes(file)
  const machine = filesIn(machineFolders).filter(isWanted)
  const growing = growingFiles.flatMap((pattern) => globSync(pattern).toSorted())
  const processor = [...growing, ...filesIn(processorFolders)].filter(isWanted)
  const queues = [machine, processor].map((files) => files.filter((file) => !isMeasuring(file)))
  const [onMachine = [], beside = []] = queues
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  await Promise.all([runAll([onMachine, beside], total), runAll([beside], total)])
  await runAll([[...machine, ...processor].filter(isMeasuring)], total)
  return report(total)
}

async function long(): Promise<boolean> {
  const total: Counts = { passed: 0, failed: 0, skipped: 0 }
  await runAll([filesIn([longFolder])], total, longestLongFileMs)
  return report(total)
}

function filesIn(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => globSync(`test/${folder}/**/*.test.ts`).toSorted())
}

/** One file after the other, from the first queue that is not empty. Queues may be shared with other callers. */
async function runAll(queues: readonly string[][], total: Counts, longestMs = longestFileMs): Promise<void> {
  for (;;) {
    const file = queues.find((queue) => queue.length > 0)?.shift()
    if (file === undefined) return
    add(total, await runFile(file, longestMs))
  }
}

async function runFile(file: string, longestMs: number): Promise<Counts> {
  const start = performance.now()
  const { counts, lines } = await run(runner([file], 1, longestMs), longestMs, { HAWSER_HEAVY: '1' })
  const seconds = ((performance.now() - start) / 1_000).toFixed(0)
  const summary = `# ${file}: ${counts.passed} ok, ${counts.failed} not, ${counts.skipped} left out, ${seconds} s`
  process.stdout.write(`${[...lines, summary].join('\n')}\n`)
  return counts
}

interface Outcome {
  readonly counts: Counts
  /** What a person should read. */
  readonly lines: readonly string[]
}

async function run(args: readonly string[], longestMs: number, env: NodeJS.ProcessEnv): Promise<Outcome> {
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: longestMs + 30_000,
    killSignal: 'SIGKILL',
    env: { ...environment(), ...env },
  })
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  const [, ok, failures, skipped] = /^(\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(stdout) ?? []
  const counts = { passed: Number(ok ?? 0), failed: Number(failures ?? 1), skipped: Number(skipped ?? 0) }
  if (status !== 0 && counts.failed === 0) counts.failed = 1
  const rest = stdout.split('\n').filter((line) => line.trim() !== '' && !/^(in [\d.]+ s|\d+ passed, .*)$/.test(line))
  return { counts, lines: [...stderr.split('\n').filter((line) => line.trim() !== ''), ...rest] }
}

function add(total: Counts, counts: Counts): void {
  for (const name of ['passed', 'failed', 'skipped'] as const) total[name] += counts[name]
}

function report({ passed: ok, failed, skipped }: Counts): boolean {
  process.stdout.write(`${ok} passed, ${failed} failed, ${skipped} skipped\n`)
  return failed === 0
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
  process.stderr.write('usage: node tools/test.ts quick | heavy [folder …] | long\n')
  return false
}
