// What does a script learn from the exit code? Stable numbers, also printed by `hawser --help`.

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  /** `why`: something waits; `doctor`, `driver check`, `lab run`: problems were found. */
  waiting: 4,
  unreachable: 5,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** A command that a signal ended says so, as a shell would. */
export const signalCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

export type StopSignal = keyof typeof signalCodes

/** Stricli's own codes are negative: what it found wrong before a command ran is a mistake of the user. */
export function ownExitCode(code: number): number {
  if (code >= 0) return code
  return code === -1 ? exitCodes.failed : exitCodes.usage
}
