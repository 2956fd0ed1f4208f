// What do operators read? One structured line per fact; the message is constant, data stands in fields.
// Two kinds of secrets are cut from every line: fields with a secret's name, and the data of a Secret object.
// Nothing else is recognised: whoever logs a secret under another name, or inside a message, shows it.

export interface Log {
  error(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  debug(message: string, fields?: Fields): void
  /** A log whose every line carries these fields. */
  child(fields: Fields): Log
}

export type Level = 'error' | 'warn' | 'info' | 'debug'
export type Fields = Readonly<Record<string, unknown>>
export type Sink = (level: Level, message: string, fields: Fields) => void

/** Fields of a level that nobody reads (`isRead`) are not looked at. */
export function createLog(sink: Sink, base: Fields = {}, isRead: (level: Level) => boolean = () => true): Log {
  const line =
    (level: Level) =>
    (message: string, fields: Fields = {}) => {
      if (isRead(level)) sink(level, message, redact({ ...base, ...fields }))
    }
  return {
    error: line('error'),
    warn: line('warn'),
    info: line('info'),
    debug: line('debug'),
    child: (fields) => createLog(sink, { ...base, ...fields }, isRead),
  }
}

export const silentLog: Log = createLog(() => {})

/** Values of fields with these names are never shown. */
const secretNames = /^(secrets?|password|passphrase|token|authorization|private_?key|client_?key|.*-?secret)$/i

function redact(fields: Fields): Fields {
  return redactValue(fields, 0) as Fields
}

function redactValue(value: unknown, depth: number): unknown {
  if (value instanceof Error) return errorFields(value, depth)
  if (value === null || typeof value !== 'object') return typeof value === 'bigint' ? value.toString() : value
  if (depth > 6) return '[deep]'
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth + 1))
  const object = value as Record<string, unknown>
  const isSecretObject = object['kind'] === 'Secret'
  return Object.fromEntries(
    Object.entries(object).map(([name, item]) => {
      const hide =
        (secretNames.test(name) && item !== undefined) || (isSecretObject && /^(data|stringData)$/.test(name))
      return [name, hide ? '[secret]' : redactValue(item, depth + 1)]
    }),
  )
}

function errorFields(error: Error, depth: number): unknown {
  const { code, effect } = error as { code?: unknown; effect?: unknown }
  return {
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(effect === undefined ? {} : { effect }),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, depth + 1) }),
  }
}
