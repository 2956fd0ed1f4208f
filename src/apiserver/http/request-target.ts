// Which path and which parameters does the first line of a request name?

/** Undefined when the address cannot be read. */
export function queryOf(url: string): URLSearchParams | undefined {
  if (/^\/[\w./-]*$/.test(url)) return noQuery
  try {
    return new URL(`http://server${url}`).searchParams
  } catch {
    return undefined
  }
}

/** Most requests ask without parameters: the answers need no conversions. */
class NoParameters extends URLSearchParams {
  override get(): null {
    return null
  }
  override getAll(): string[] {
    return []
  }
  override has(): boolean {
    return false
  }
}

const noQuery = new NoParameters()

/** The path as sent: a URL object would resolve `..` before the router can refuse it. */
export function rawPath(url: string): string {
  const end = url.search(/[?#]/)
  return end < 0 ? url : url.slice(0, end)
}
