// Who uses an image now? The loop devices bound to it, and where their filesystems are mounted, as the kernel tells.
import { readdirSync, readFileSync } from 'node:fs'
import { parseMountinfo } from '../host/linux/mountinfo.ts'

export function mountsOfImage(image: string): { readonly isBound: boolean; readonly mounted: readonly string[] } {
  const loops = readdirSync('/sys/block').filter((name) => name.startsWith('loop') && backingFile(name) === image)
  const devices = new Set(loops.map((name) => `/dev/${name}`))
  const all = parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'))
  const mounted = all.filter(({ source, root }) => devices.has(source) && root === '/').map((each) => each.mountPoint)
  return { isBound: loops.length > 0, mounted }
}

function backingFile(loop: string): string | undefined {
  try {
    return readFileSync(`/sys/block/${loop}/loop/backing_file`, 'utf8').trim()
  } catch {
    return undefined // not bound
  }
}
