// The log of the real program: JSON lines through pino, or readable lines on a terminal.
import { pino } from 'pino'
import type { Level, Log } from './log.ts'
import { createLog } from './log.ts'

export function createPinoLog(options: { level: Level; destination?: number }): Log {
  const logger = pino(
    { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: options.destination ?? 2, sync: true }),
  )
  return createLog(
    (level, message, fields) => logger[level](fields, message),
    {},
    (level) => logger.isLevelEnabled(level),
  )
}
