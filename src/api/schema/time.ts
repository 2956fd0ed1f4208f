// What is the canonical text of a time? RFC 3339 in any zone becomes UTC: whole seconds for Time, six digits for
// MicroTime.

/** Undefined when the text is no RFC 3339 time. */
export function canonicalTime(text: string, micro: boolean): string | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text)
  const [, seconds = '', fraction = '', zone = ''] = match ?? []
  if (match === null) return undefined
  const moment = Date.parse(`${seconds}${zone}`)
  // A day that does not exist would be shifted silently by Date; the round trip finds it.
  const local = Date.parse(`${seconds}Z`)
  if (Number.isNaN(moment) || Number.isNaN(local) || !isoSeconds(local).startsWith(seconds)) return undefined
  const whole = isoSeconds(moment).slice(0, 19)
  return micro ? `${whole}.${fraction.slice(0, 6).padEnd(6, '0')}Z` : `${whole}Z`
}

function isoSeconds(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}
