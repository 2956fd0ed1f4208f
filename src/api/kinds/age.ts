// How long ago was that, in the few characters kubectl shows?
// The steps are those of Kubernetes: the further back, the coarser, and a zero second part is left out.

/** The age of an RFC 3339 time; `<unknown>` without one. */
export function age(time: string | null | undefined, now: number): string {
  if (time === undefined || time === null || time === '') return '<unknown>'
  const then = Date.parse(time)
  return Number.isNaN(then) ? '<unknown>' : duration(now - then)
}

export function duration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 60 * 2) return `${seconds}s`
  const minutes = Math.trunc(seconds / 60)
  if (minutes < 10) return twoParts(minutes, 'm', seconds % 60, 's')
  if (minutes < 60 * 3) return `${minutes}m`
  const hours = Math.trunc(minutes / 60)
  if (hours < 8) return twoParts(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (days < 8) return twoParts(days, 'd', hours % 24, 'h')
  if (days < 365 * 2) return `${days}d`
  const years = Math.trunc(days / 365)
  if (years < 8) return twoParts(years, 'y', days % 365, 'd')
  return `${years}y`
}

function twoParts(first: number, firstUnit: string, second: number, secondUnit: string): string {
  return second === 0 ? `${first}${firstUnit}` : `${first}${firstUnit}${second}${secondUnit}`
}
