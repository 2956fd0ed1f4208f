// How does the launch server start a process whose streams are open already? On the host by itself, in a container through a thread
// with the container's rights.
import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import type { InsideRequest } from '../processes.ts'
import { createInsideStarter } from './launch-inside.ts'

interface StartRequest {
  readonly argv: readonly string[]
  readonly inside?: InsideRequest
  readonly env: Readonly<Record<string, string>>
}

/** Descriptors; without an input it reads nothing. Answers the pid; `onExit` is called once, when the process has gone. */
export type StartProcess = (
  request: StartRequest,
  stdio: readonly [number | undefined, number, number],
  onExit: (exitCode: number) => void,
) => Promise<number>

export function createStartProcess(): StartProcess {
  const starter = createInsideStarter()
  return async ({ argv, inside, env }, [input, output, errors], onExit) => {
    // Inside, /dev/null is what the container made of it.
    const nothing = input === undefined ? openSync('/dev/null', 'r') : undefined
    const stdio = [input ?? nothing!, output, errors] as const
    try {
      if (inside) return await starter.start({ ...inside, argv, env, stdio }, onExit)
      return startHere({ argv, env }, stdio, onExit)
    } finally {
      if (nothing !== undefined) closeSync(nothing)
    }
  }
}

function startHere(
  { argv: [program = '', ...args], env }: StartRequest,
  stdio: readonly number[],
  onExit: (exitCode: number) => void,
): number {
  const child = spawn(program, args, { detached: true, env: { ...env }, cwd: '/', stdio: [...stdio] })
  // A program that cannot be started has no pid; that is checked below.
  child.once('error', () => {})
  if (child.pid === undefined) throw new Error(`${program} cannot be started`)
  child.once('exit', (code, signal) => onExit(code ?? 128 + (signal ? constants.signals[signal] : 9)))
  return child.pid
}
