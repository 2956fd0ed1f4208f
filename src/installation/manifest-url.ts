// How is a manifest read from a URL? With a time limit and a size limit.
const longestMs = 30_000
const longestBytes = 10 * 1024 * 1024

export async function fetchManifest(url: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(longestMs)]) })
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
  const text = await answer.text()
  if (text.length > longestBytes) throw new Error(`${url} answered more than ${longestBytes} bytes`)
  return text
}
