// Which commands are there? The table of all of them; each is loaded only when it is called.
import { buildApplication, text_en } from '@stricli/core'
import type { Application } from '@stricli/core'
import { StatusError } from '../api/status-error.ts'
import { UsageError } from '../main/config.ts'
import { agent } from './commands/agent.ts'
import { apply } from './commands/apply.ts'
import { backup, restore } from './commands/backup.ts'
import { bench } from './commands/bench.ts'
import { completion, createComplete } from './commands/completion.ts'
import { demo } from './commands/demo.ts'
import { describe } from './commands/describe.ts'
import { detach } from './commands/detach.ts'
import { doctor } from './commands/doctor.ts'
import { driver } from './commands/driver/routes.ts'
import { events } from './commands/events.ts'
import { get } from './commands/get.ts'
import { logs } from './commands/logs.ts'
import { remove } from './commands/delete.ts'
import { run } from './commands/run.ts'
import { sim } from './commands/sim.ts'
import { token } from './commands/token.ts'
import { up } from './commands/up.ts'
import { version as versionCommand } from './commands/version.ts'
import { volume } from './commands/volume/routes.ts'
import { why } from './commands/why.ts'
import type { Context } from './context.ts'
import { Missing, StillWaiting, Unreachable } from './errors.ts'
import { exitCodes } from './exit-codes.ts'
import { packageVersion } from '../main/version.ts'
import { buildRoutes } from './routes.ts'

export function createApplication(): Application<Context> {
  const root = buildRoutes({
    routes: {
      up,
      agent,
      demo,
      why,
      get,
      describe,
      apply,
      delete: remove,
      logs,
      events,
      volume,
      run,
      detach,
      driver,
      doctor,
      backup,
      restore,
      sim,
      bench,
      token,
      completion,
      version: versionCommand,
      __complete: createComplete(createApplication),
    },
    docs: {
      hideRoute: { __complete: true },
      brief: 'Kubernetes volumes without the cluster',
      fullDescription: [
        'Kubernetes volumes without the cluster: claims, classes, attach, mount, expand, snapshots and CSI in one program.',
        '',
        'Exit codes: 0 done · 1 failed · 2 wrong usage · 3 not found · 4 something waits or is wrong · 5 server unreachable',
      ].join('\n'),
    },
  })
  return buildApplication(root, {
    name: 'hawser',
    versionInfo: { currentVersion: packageVersion },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
    documentation: { disableAnsiColor: process.env['NO_COLOR'] !== undefined, useAliasInUsageLine: false },
    determineExitCode: exitCodeOf,
    localization: { text: { ...text_en, exceptionWhileRunningCommand: sentence, commandErrorResult: sentence } },
  })
}

function exitCodeOf(error: unknown): number {
  if (error instanceof Unreachable) return exitCodes.unreachable
  if (error instanceof Missing) return exitCodes.notFound
  if (error instanceof UsageError) return exitCodes.usage
  if (error instanceof StillWaiting) return exitCodes.waiting
  if (error instanceof StatusError) return error.code === 404 ? exitCodes.notFound : exitCodes.failed
  return isUnreachable(error) ? exitCodes.unreachable : exitCodes.failed
}

/** One sentence and a hint; a stack trace only for what must be a bug of ours. */
function sentence(error: unknown): string {
  if (error instanceof UsageError || error instanceof StillWaiting)
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
