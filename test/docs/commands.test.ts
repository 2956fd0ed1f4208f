// Do the commands in the documents work? Each page gets a server of its own; every `$ ` line of a console block is run.
//
// 1. A line must end with code 0, or with the one that its comment names (`# exit 4`).
// 2. Output shown below a line must appear in the real one, unless it contains digits (times, sizes, ids differ).
// 3. `<!-- server: ARGS -->` on top of a page says how its server is started. Other blocks: text-blocks.test.ts.
import assert from 'node:assert/strict'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { repository, runProgram, startServer } from '../kit/server-process.ts'

interface Step {
  readonly line: number
  readonly command: string
  readonly code: number
  readonly expected: readonly string[]
}

const pages = globSync('{*.md,docs/**/*.md}', { cwd: repository }).toSorted()
const isRoot = process.getuid?.() === 0

for (const page of pages) {
  const text = readFileSync(join(repository, page), 'utf8')
  const steps = stepsOf(text)
  if (steps.length === 0) continue
  test(`the commands of ${page}`, { skip: isRoot ? false : 'mounting needs root', timeout: 240_000 }, async () => {
    const args = /<!-- server: (.*) -->/.exec(text)?.[1]?.split(' ') ?? []
    await using server = await startServer(args)
    const work = mkdtempSync(join(tmpdir(), 'hawser-docs-'))
    const env = {
      PATH: `${join(repository, 'bin')}${delimiter}${process.env['PATH']}`,
      KUBECONFIG: server.kubeconfig,
      DATA: server.dataDirectory,
      WORK: work,
      NODE: process.execPath,
      NO_COLOR: '1',
    }
    try {
      for (const step of steps) await check(page, step, env)
    } finally {
      // Whatever a page left running must not outlive its server.
      await runProgram('hawser', ['delete', 'pods', '--all', '--yes'], { env })
      rmSync(work, { recursive: true, force: true })
    }
  })
}

test('no page has a console block without commands', () => {
  for (const page of pages) {
    const blocks = readFileSync(join(repository, page), 'utf8').matchAll(/^```console\n([\s\S]*?)^```/gm)
    for (const [, block] of blocks) assert.match(block!, /^\$ /m, page)
  }
})

async function check(page: string, { line, command, code, expected }: Step, env: NodeJS.ProcessEnv): Promise<void> {
  const result = await runProgram('bash', ['-c', command], { env })
  const output = `${result.stdout}${result.stderr}`
  assert.equal(result.code, code, `${page}:${line}: ${command}\n${output}\n`)
  const plain = output.replaceAll(/\s+/g, ' ')
  for (const text of expected)
    assert.ok(plain.includes(text.trim().replaceAll(/\s+/g, ' ')), `${page}:${line}: "${text}" is not in\n${output}`)
}

function stepsOf(text: string): Step[] {
  const steps: Step[] = []
  let inside = false
  text.split('\n').forEach((row, index) => {
    if (row.startsWith('```')) {
      inside = row === '```console'
      return
    }
    if (!inside) return
    if (row.startsWith('$ ')) {
      const [, command = '', code] = /^\$ (.*?)(?:\s+# exit (\d+))?$/.exec(row) ?? []
      steps.push({ line: index + 1, command, code: Number(code ?? 0), expected: [] })
    } else if (row.trim() !== '' && !/\d/.test(row)) {
      const last = steps.pop()
      assert.ok(last, `line ${index + 1}: output without a command`)
      steps.push({ ...last, expected: [...last.expected, row] })
    }
  })
  return steps
}
