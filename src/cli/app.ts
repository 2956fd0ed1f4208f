// Which commands are there? The table of all of them; each is loaded only when it is called.
import { buildApplication, text_en } from '@stricli/core'
import type { Application, Command, RouteMap } from '@stricli/core'
import { StatusError } from '../api/status-error.ts'
import { UsageError } from '../installation/config.ts'
import type { Context } from './context.ts'
import { Interrupted, Missing, StillWaiting, Unreachable } from './errors.ts'
import { flagMistake } from './flag-suggestions.ts'
import { exitCodes, signalCodes } from './exit-codes.ts'
import { packageVersion } from '../installation/version.ts'
import { buildRoutes } from './routes.ts'
import { terminalText } from './terminal-text.ts'

type Route = Command<Context> | RouteMap<Context>

/** What a command needs is read from disk when the command is called: a server has no use for the parts of the others. */
const commands: Readonly<Record<string, () => Promise<Route>>> = {
  up: async () => (await import('./commands/up.ts')).up,
  agent: async () => (await import('./commands/agent.ts')).agent,
  stop: async () => (await import('./commands/stop.ts')).stop,
  demo: async () => (await import('./commands/demo.ts')).demo,
  why: async () => (await import('./commands/why.ts')).why,
  explain: async () => (await import('./commands/explain.ts')).explainCause,
  get: async () => (await import('./commands/get.ts')).get,
  describe: async () => (await import('./commands/describe.ts')).describe,
  apply: async () => (await import('./commands/apply.ts')).apply,
  delete: async () => (await import('./commands/delete.ts')).remove,
  logs: async () => (await import('./commands/logs.ts')).logs,
  exec: async () => (await import('./commands/exec.ts')).exec,
  attach: async () => (await import('./commands/exec.ts')).attach,
  cp: async () => (await import('./commands/cp.ts')).cp,
  'port-forward': async () => (await import('./commands/port-forward.ts')).portForward,
  events: async () => (await import('./commands/events.ts')).events,
  audit: async () => (await import('./commands/audit.ts')).audit,
  volume: async () => (await import('./commands/volume/routes.ts')).volume,
  run: async () => (await import('./commands/run.ts')).run,
  detach: async () => (await import('./commands/detach.ts')).detach,
  node: async () => (await import('./commands/node.ts')).node,
  driver: async () => (await import('./commands/driver/routes.ts')).driver,
  lab: async () => (await import('./commands/lab/routes.ts')).lab,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  backup: async () => (await import('./commands/backup.ts')).backup,
  restore: async () => (await import('./commands/backup.ts')).restore,
  store: async () => (await import('./commands/store.ts')).store,
  sim: async () => (await import('./commands/sim.ts')).sim,
  bench: async () => (await import('./commands/bench.ts')).bench,
  token: async () => (await import('./commands/token.ts')).token,
  completion: async () => (await import('./commands/completion.ts')).completion,
  version: async () => (await import('./commands/version.ts')).version,
  __complete: async () => (await import('./commands/completion.ts')).createComplete(() => createApplication()),
}

/** `words` is the command line. If the first one names a command, only that one is loaded; help needs them all. */
export async function createApplication(words: readonly string[] = []): Promise<Application<Context>> {
  const [first] = words
  const known = first !== undefined && Object.hasOwn(commands, first)
  const wanted = Object.entries(commands).filter(([name]) => !known || name === first)
  const routes = await Promise.all(wanted.map(async ([name, load]) => [name, await load()] as const))
  const root = buildRoutes({
    routes: Object.fromEntries(routes),
    docs: {
      hideRoute: { __complete: true },
      brief: 'Kubernetes volumes without the cluster',
      fullDescription: [
        'Kubernetes volumes without the cluster: claims, classes, attach, mount, expand, snapshots and CSI in one program.',
        '',
        'Exit codes: 0 success · 1 failed · 2 wrong usage · 3 not found · 4 waiting, or problems found · 5 server unreachable ·',
        '130, 143 ended by Ctrl-C or SIGTERM',
      ].join('\n'),
    },
  })
  return buildApplication(root, {
    name: 'hawser',
    versionInfo: { currentVersion: packageVersion },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
    documentation: {
      disableAnsiColor: true,
      useAliasInUsageLine: false,
      // All flags on one line would be up to 400 columns; they are listed below it.
      onlyRequiredInUsageLine: true,
    },
    determineExitCode: exitCodeOf,
    localization: {
      text: {
        ...text_en,
        exceptionWhileRunningCommand: shown,
        commandErrorResult: shown,
        exceptionWhileParsingArguments: (error, color) =>
          flagMistake(error, root, words) ?? text_en.exceptionWhileParsingArguments(error, color),
      },
    },
  })
}

function exitCodeOf(error: unknown): number {
  if (error instanceof Unreachable) return exitCodes.unreachable
  if (error instanceof Missing) return exitCodes.notFound
  if (error instanceof UsageError) return exitCodes.usage
  if (error instanceof StillWaiting) return exitCodes.waiting
  if (error instanceof Interrupted) return signalCodes[error.signal]
  if (error instanceof StatusError) return error.code === 404 ? exitCodes.notFound : exitCodes.failed
  return isUnreachable(error) ? exitCodes.unreachable : exitCodes.failed
}

/** A message may hold what a driver, a pod or another user wrote. */
const shown = (error: unknown) => terminalText(sentence(error), false)

/** One sentence and a hint; a stack trace only for what must be a bug of ours. */
function sentence(error: unknown): string {
  if (error instanceof UsageError || error instanceof StillWaiting || error instanceof Interrupted)
    return `hawser: ${error.message}${error.hint ? `\n  try: ${error.hint}` : ''}`
  if (error instanceof StatusError) return `hawser: ${error.message}`
  if (isUnreachable(error)) {
    return `hawser: the server cannot be reached: ${(error as Error).message}\n  try: hawser up (in another terminal)`
  }
  if (error instanceof Error && 'code' in error) return `hawser: ${error.message}`
  const stack = error instanceof Error ? error.stack : String(error)
  return `hawser: this is a bug in Hawser; please report it with these lines\n${stack}`
}

function isUnreachable(error: unknown): boolean {
  for (let current = error; current instanceof Error; current = current.cause) {
    const { code } = current as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED' || code === 'ECONNRESET' || code === 'ENOTFOUND' || code === 'EHOSTUNREACH') return true
  }
  return false
}
