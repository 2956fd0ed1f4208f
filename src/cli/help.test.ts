// Can help be read on a terminal, and does every command that we suggest exist? All help texts, and all commands named in texts
// of this program: errors, hints, examples, causes of `why`.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { generateHelpTextForAllCommands, run } from '@stricli/core'
import type { Application, Command, CommandContext, RouteMap } from '@stricli/core'
import { createApplication } from './app.ts'
import { createContext } from './context.ts'
import { fitHelp } from './routes.ts'

// Only texts are read here; no command runs, so the context's kind does not matter.
const application = (await createApplication()) as unknown as Application<CommandContext>
const helpTexts = generateHelpTextForAllCommands(application).filter(([route]) => !route.includes('__'))

test('no line of any help is wider than 100 columns', () => {
  const wide = helpTexts.flatMap(([route, text]) =>
    text
      .split('\n')
      .filter((line) => line.length > 100)
      .map((line) => `${route}: ${line}`),
  )
  assert.deepEqual(wide, [])
})

test('every help has examples', () => {
  assert.ok(helpTexts.length > 30)
  const without = helpTexts.filter(([, text]) => !/Examples:\n {2}\S/.test(text)).map(([route]) => route)
  assert.deepEqual(without, [])
})

test('the rest of a long line of prose begins the next line, and examples stand for themselves', () => {
  assert.equal(
    fitHelp('one two three four\nfive six\n\nExamples:\n  hawser one two\n  hawser', 14),
    'one two three\nfour five six\n\nExamples:\n  hawser one\n  two\n  hawser',
  )
  const orphans = helpTexts.flatMap(([route, text]) =>
    text
      .split('\n')
      .filter((line, index, lines) => /^[a-z]\S*( \S+)?$/.test(line) && /^[A-Z]/.test(lines[index + 1] ?? ''))
      .map((line) => `${route}: ${line}`),
  )
  assert.deepEqual(orphans, [], 'no line ends after one or two words in the middle of a paragraph')
})

test('long rows continue in their last column', () => {
  assert.equal(
    fitHelp('FLAGS\n  -a [--all]   one two three   [default = false]\nplain text that is long', 30),
    'FLAGS\n  -a [--all]   one two three\n               [default = false]\nplain text that is long',
  )
  assert.equal(fitHelp('plain text that is long', 12), 'plain text\nthat is long')
})

test('every command that a text suggests is understood by the parser', async () => {
  const suggested = globSync('src/**/*.ts', { cwd: repository })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => suggestionsIn(file, readFileSync(join(repository, file), 'utf8')))
  assert.ok(suggested.length > 250, `only ${suggested.length} were found`)
  const dead: string[] = []
  for (const { at, command } of suggested) {
    const problem = await problemOf(command)
    if (problem !== undefined) dead.push(`${at}: hawser ${command}: ${problem}`)
  }
  assert.deepEqual(dead, [])
})

test('a suggestion about a namespaced object carries its namespace', () => {
  const without = globSync('src/cli/**/*.ts', { cwd: repository })
    .filter((file) => !file.endsWith('.test.ts'))
    .flatMap((file) => suggestionsIn(file, readFileSync(join(repository, file), 'utf8')))
    .filter(({ raw }) => namespacedCommands.test(raw) && raw.includes('${') && !raw.includes('inNamespace('))
    .map(({ at, raw }) => `${at}: ${raw}`)
  assert.deepEqual(without, [])
})

const repository = join(import.meta.dirname, '../..')
/** Commands about an object in a namespace; `hints.ts` makes those for `why` and `describe`. */
const namespacedCommands = /^(why|describe|delete|logs|exec|attach|cp|run|volume|port-forward|get (pod|pvc)) /

interface Suggestion {
  readonly at: string
  /** As written, to the end of the line. */
  readonly raw: string
  readonly command: string
}

/** `hawser …` in the strings of a source file, up to where prose goes on. */
function suggestionsIn(file: string, source: string): Suggestion[] {
  return source.split('\n').flatMap((line, index) => {
    if (/^\s*(\/\/|\/?\*)/.test(line)) return []
    return [...line.matchAll(/(?<=["'`( ]|\.\/bin\/)hawser ([a-z_][^\n]*)/g)].map(([, rest = '']) => {
      return { at: `${file}:${index + 1}`, raw: rest, command: untilProse(filled(rest)) }
    })
  })
}

const untilProse = (text: string) =>
  text.split(/'(?:[,\]):]| :|$)|(?<=')"|`|\\n|"|\)|;|, | \(| … |: |\. | {2,}#| [<>|] | and |,$/)[0]!.trim()

const filled = (raw: string) =>
  raw
    .replaceAll(/\$\{inNamespace\([^}]*\}/g, '')
    .replaceAll('${flags.cast}', 'model')
    .replaceAll(/\$\{[^}]*\}/g, '1')

/** Parses, without running anything. */
async function problemOf(command: string): Promise<string | undefined> {
  let text = ''
  const stream = { isTTY: false, write: (piece: string) => ((text += piece), true), getColorDepth: () => 1 }
  const streams = { stdout: stream, stderr: stream, env: {}, exitCode: undefined as number | string | null | undefined }
  const sizes = command.replaceAll(/\bSIZE\b/g, '1Gi')
  const words = (sizes.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll(/^'|'$/g, ''))
  const parser = inert((await createApplication(words)) as never)
  // a test's stream: only these are used
  await run(parser as never, words, createContext(streams as never) as never)
  return streams.exitCode ? text.trim().split('\n')[0]! : undefined
}

/** The application with commands that do nothing. */
function inert(app: { readonly root: Command<CommandContext> | RouteMap<CommandContext> }): unknown {
  return { ...app, root: inertRoute(app.root) }
}

function inertRoute(route: object): object {
  if ('loader' in route) return { ...route, loader: async () => () => undefined }
  const map = route as RouteMap<CommandContext>
  return {
    ...map,
    getRoutingTargetForInput: (input: string) => {
      const found = map.getRoutingTargetForInput(input)
      return found && inertRoute(found)
    },
    getDefaultCommand: () => {
      const found = map.getDefaultCommand()
      return found && inertRoute(found)
    },
  }
}
