// Do the command blocks that are no `console` blocks work? They start servers and agents, or speak of other machines, so each
// is tried here with what it needs around it and with words replaced; a block that is neither run nor listed fails.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { repository, runProgram, startServer } from '../kit/server-process.ts'

interface Block {
  readonly page: string
  readonly lines: readonly string[]
}

interface Trial {
  /** Arguments of a server that runs before the block; without them the block brings its own. */
  readonly server?: readonly string[]
  /** Run first; a command that ends with `&` goes on beside the block. */
  readonly before?: readonly string[]
  readonly replace?: Readonly<Record<string, string>>
  /** Lines that are not run, and who runs them instead. */
  readonly elsewhere?: Readonly<Record<string, string>>
  readonly needsKubectl?: boolean
  /** Exit codes that are fine beside 0: `why` says 4 while something is still under way. */
  readonly codes?: readonly number[]
}

const ownListener = { 'hawser up': 'hawser up --listen 127.0.0.1:0', '--listen 0.0.0.0:7443': '', 'sudo ': '' }

const firstRuns = [
  `hawser apply -f ${join(repository, 'docs/examples/first.yaml')}`,
  'until hawser exec first -- test -s /data/written; do sleep 0.2; done',
]

const servedDriver = [
  'hawser driver serve --name my.example.com --socket csi.sock --data images --node ci &',
  'until [ -S csi.sock ]; do sleep 0.1; done',
]

/** By page and first line. */
const trials: Readonly<Record<string, Trial>> = {
  'README.md: npm ci && npm run demo': {
    replace: { 'npm ci && ': '' },
    elsewhere: { 'npm ci && npm test': 'it is what runs this test' },
  },
  'README.md: ./bin/hawser up': { replace: ownListener, codes: [4] },
  'CONTRIBUTING.md: npm ci': {
    elsewhere: Object.fromEntries(
      ['npm ci', 'npm test', 'npm run check', 'npm run format', 'npm run test:heavy', 'npm run bench', '.ci/run'].map(
        (command) => [command, 'continuous integration (.ci/run)'],
      ),
    ),
  },
  'docs/how-to/back-up.md: hawser backup monday.jsonl --with-data': {
    before: ['hawser up --listen 127.0.0.1:0', ...firstRuns],
    replace: { '/srv/hawser-new': 'new' },
  },
  'docs/embedding.md: npm ci': { elsewhere: { npm: 'test/package/tarball.test.ts' } },
  'docs/embedding.md: npm init': { elsewhere: { npm: 'test/package/tarball.test.ts' } },
  'docs/embedding.md: npm test': { elsewhere: { npm: 'test/package/tarball.test.ts' } },
  'docs/install.md: sudo dpkg': {
    elsewhere: {
      'sudo dpkg -i': 'test/package/deb.test.ts unpacks and runs it',
      'sudo systemctl': 'a machine with systemd',
    },
  },
  'docs/install.md: hawser doctor': { codes: [4] },
  'docs/quick-start.md: npm ci': { replace: ownListener, elsewhere: { 'npm ci': 'test/package/tarball.test.ts' } },
  'docs/quick-start.md: export PATH=$PWD/bin:$PATH': {},
  'docs/how-to/a-machine-died.md: hawser detach pvc/data NODE': {
    server: ['--extra-node', 'n2'],
    before: [
      'hawser volume create data --size 32Mi --node n2',
      'hawser run --name user --claim data:/data --node n2 -- sleep 100 &',
      'until hawser get pod/user -o json | grep -q \'"phase": "Running"\'; do sleep 0.2; done',
    ],
    replace: { NODE: 'n2', "pulled'": "pulled' --yes --no-wait" },
  },
  'docs/how-to/add-a-node.md: hawser up --listen 0.0.0.0:7443': { replace: { '0.0.0.0:7443': '0.0.0.0:0' } },
  'docs/how-to/add-a-node.md: hawser agent': { elsewhere: { 'hawser agent': 'test/cli/join.test.ts' } },
  'docs/how-to/add-a-node.md: hawser node drain': {
    elsewhere: { 'hawser node drain': 'test/cli/join.test.ts', 'hawser node rm': 'test/cli/join.test.ts' },
  },
  'docs/how-to/use-etcd.md: hawser up --store etcd': {
    elsewhere: { 'hawser up --store etcd': 'test/store/etcd-server.test.ts' },
  },
  'docs/how-to/keep-a-second-server.md: hawser up': { elsewhere: { 'hawser up': 'test/store/standby.test.ts' } },
  'docs/how-to/move-to-etcd.md: hawser store': {
    elsewhere: { 'hawser store': 'test/store/migrate.test.ts', 'hawser up': 'test/store/migrate.test.ts' },
  },
  'docs/how-to/keep-the-data.md: kubectl patch pv NAME': {
    server: [],
    before: ['hawser volume create kept --size 32Mi --node "$(hostname)"'],
    replace: { NAME: '$(kubectl get pv -o name | cut -d/ -f2)' },
    needsKubectl: true,
  },
  'docs/how-to/move-to-another-node.md: hawser up --extra-node n2': { replace: ownListener },
  'docs/how-to/use-a-csi-driver.md: hawser driver check': {
    before: servedDriver,
    replace: { '/run/csi/csi.sock': 'csi.sock' },
  },
  'docs/how-to/use-a-csi-driver.md: hawser up --csi-driver': {
    replace: { ...ownListener, '/run/csi/csi.sock': 'csi.sock' },
  },
  'docs/how-to/use-a-second-disk.md: hawser driver serve': {
    replace: { ...ownListener, '/run/slow/csi.sock': 'csi.sock', '/mnt/disk2': 'images' },
  },
  'docs/how-to/test-a-driver-in-ci.md: docs/examples/driver-in-ci.sh': {
    before: servedDriver,
    replace: { '/run/my/csi.sock': '"$HAWSER_DATA_DIR/../csi.sock"' },
  },
  'docs/how-to/find-faults-of-a-driver.md: hawser lab run': {
    before: servedDriver,
    replace: {
      '/run/csi/csi.sock': 'csi.sock',
      // All suites: test/cli/lab.test.ts.
      'hawser lab run': 'hawser lab run --suites honesty',
      './my-driver --endpoint unix://{socket} --nodeid n1':
        'hawser driver serve --socket {socket} --data other-images --node n1',
    },
  },
  'docs/how-to/watch-and-fail-driver-calls.md: hawser driver trace': {
    before: servedDriver,
    replace: { ...ownListener, '/run/csi/csi.sock': 'csi.sock', '/run/csi/traced.sock': 'traced.sock' },
  },
  'docs/how-to/watch-and-fail-driver-calls.md: hawser driver proxy': {
    before: servedDriver,
    replace: { ...ownListener, '/run/csi/csi.sock': 'csi.sock', '/run/csi/faulty.sock': 'faulty.sock' },
  },
  'docs/how-to/look-into-a-pod.md: hawser logs': {
    server: [],
    before: firstRuns,
    replace: { ' --follow': '', '-it -- sh': '-- true' },
    elsewhere: { 'hawser port-forward': 'test/cli/look.test.ts' },
  },
  'docs/how-to/look-into-a-pod.md: kubectl get --raw': {
    server: ['--node-name', 'n1'],
    before: firstRuns,
    replace: { NODE: 'n1' },
    needsKubectl: true,
  },
  'docs/how-to/give-access.md: kubectl --as=bob auth whoami': { server: ['--bare'], needsKubectl: true },
  'docs/how-to/use-kubectl.md: export KUBECONFIG': {
    server: [],
    replace: { '/var/lib/hawser/kubeconfig': '$KUBECONFIG' },
    needsKubectl: true,
  },
}

/** Pages written from the code: help texts, and what helps with a symptom (tools/gen-reference.test.ts, src/why). */
const generatedPages = /^docs\/(reference|symptoms)\//
/** A decision begins with an example of what it leads to; that is a picture, not an instruction. */
const decisions = /^docs\/decisions\//
const command =
  /^\s*(sudo |hawser |\.\/bin\/hawser |kubectl |npm |node |export |docker |systemctl |\.ci\/|docs\/examples\/)/
/** Wide gaps before anything but a comment: columns of a picture. */
const drawing = /\S {3,}[^#\s]/
const isRoot = process.getuid?.() === 0

const pages = globSync('{*.md,docs/**/*.md}', { cwd: repository }).filter(
  (page) => !generatedPages.test(page) && !decisions.test(page),
)
const blocks = pages.toSorted().flatMap((page) => blocksOf(page, readFileSync(join(repository, page), 'utf8')))
const trialOf = ({ page, lines }: Block) =>
  Object.entries(trials).find(([key]) => `${page}: ${lines[0]}`.startsWith(key))?.[1]

test('every block of commands is run, here or as a console block', () => {
  const unknown = blocks.filter((block) => trialOf(block) === undefined)
  assert.deepEqual(
    unknown.map(({ page, lines }) => `${page}: ${lines[0]}`),
    [],
  )
  const keys = blocks.map(({ page, lines }) => `${page}: ${lines[0]}`)
  assert.deepEqual(
    Object.keys(trials).filter((key) => !keys.some((each) => each.startsWith(key))),
    [],
    'listed, and no longer there',
  )
})

const heavy = process.env['HAWSER_HEAVY'] === '1' && isRoot
for (const block of blocks) {
  const trial = trialOf(block)
  const title = `the block of ${block.page} that begins with: ${block.lines[0]}`
  const skip = heavy
    ? trial?.needsKubectl && !existsSync('/usr/bin/kubectl') && 'needs kubectl'
    : 'needs root, and time'
  if (trial) test(title, { skip, timeout: 240_000 }, () => tryBlock(block, trial))
}

async function tryBlock({ page, lines }: Block, trial: Trial): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const work = mkdtempSync(join(tmpdir(), 'hawser-docs-'))
  stack.defer(async () => void (await removeEverything(work)))
  const server = trial.server && stack.use(await startServer(trial.server))
  const env: NodeJS.ProcessEnv = {
    PATH: `${join(repository, 'bin')}${delimiter}${process.env['PATH']}`,
    HAWSER_DATA_DIR: join(work, 'data'),
    NO_COLOR: '1',
    ...(server ? { KUBECONFIG: server.kubeconfig } : { KUBECONFIG: join(work, 'data/kubeconfig') }),
  }
  const children = stack.use(createChildren())
  // Pods outlive their server, and their mounts would keep the directory.
  stack.defer(async () => void (await runProgram('hawser', ['delete', 'pods', '--all', '--yes'], { env })))
  // Files that a page names lie in the repository; what it writes must not.
  const run = async (line: string, directory: string) => {
    if (line.endsWith(' &')) return void children.start(line.slice(0, -2), env, directory)
    if (/\bhawser (up|agent)\b/.test(line)) return children.serving(line, env, directory)
    const { code, stdout, stderr } = await runProgram('bash', ['-c', line], { env, cwd: directory })
    assert.ok(code === 0 || trial.codes?.includes(code ?? -1), `${page}: ${line}\n${code}: ${stdout}${stderr}`)
  }
  for (const line of trial.before ?? []) await run(line, work)
  for (const written of lines) {
    if (Object.keys(trial.elsewhere ?? {}).some((each) => written.startsWith(each))) continue
    const replaced = Object.entries(trial.replace ?? {}).reduce((text, [from, to]) => text.replace(from, to), written)
    await run(replaced, /docs\/examples|\.\/bin\/|npm /.test(written) ? repository : work)
  }
}

/** What goes on beside the block, ended with it; its pods too. */
function createChildren() {
  const children: ChildProcess[] = []
  const start = (line: string, env: NodeJS.ProcessEnv, cwd: string) => {
    const child = spawn('bash', ['-c', `exec ${line}`], { env: { ...process.env, ...env }, cwd, stdio: 'pipe' })
    children.push(child)
    return child
  }
  return {
    start,
    async serving(line: string, env: NodeJS.ProcessEnv, cwd: string) {
      const child = start(line, env, cwd)
      let text = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (piece: Buffer) => (text += piece.toString()))
      for (let tries = 0; tries < 600 && !/serves https:|is up$/m.test(text); tries++)
        await new Promise((resolve) => setTimeout(resolve, 50))
      assert.match(text, /serves https:|is up$/m, line)
    },
    async [Symbol.asyncDispose]() {
      for (const child of children.toReversed()) {
        if (child.exitCode !== null || child.signalCode !== null) continue
        const ended = once(child, 'exit')
        child.kill('SIGTERM')
        await ended
      }
    },
  }
}

/** Blocks that are not run as console blocks and hold at least one command; comments at the end of a line are left out. */
function blocksOf(page: string, text: string): readonly Block[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)]
    .filter(([, language]) => language === 'text' || language === '' || language === 'sh' || language === 'bash')
    .map(([, , body = '']) => body.split('\n').filter((line) => command.test(line) && !drawing.test(line)))
    .filter((lines) => lines.length > 0)
    .map((lines) => ({ page, lines: lines.map((line) => line.replace(/\s+# .*$/, '').trim()) }))
}
