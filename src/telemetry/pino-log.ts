// The log of the real program: readable lines on a terminal, JSON lines through pino elsewhere.
import { isatty } from 'node:tty'
import { pino } from 'pino'
import { readableLine } from './log-line.ts'
import type { Level, Log } from './log.ts'
import { createLog } from './log.ts'

export function createPinoLog(options: { level: Level; destination?: number }): Log {
  const dest = options.destination ?? 2
  const out = pino.destination({ dest, sync: true })
  const logger = pino({ level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, out)
  const isRead = (level: Level) => logger.isLevelEnabled(level)
  if (!isatty(dest)) return createLog((level, message, fields) => logger[level](fields, message), {}, isRead)
  return createLog(
    (level, message, fields) => void out.write(`${readableLine(new Date(), level, message, fields)}\n`),
    {},
    isRead,
  )
}
