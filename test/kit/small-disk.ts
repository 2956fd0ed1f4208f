// A real disk that is soon full: 900 MiB in a file, mounted below a directory of its own. Needs root.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loopsBelow, mountsBelow } from './machine.ts'

export interface SmallDisk extends Disposable {
  /** Beside the disk, not on it. */
  readonly directory: string
  /** Where it is mounted. */
  readonly path: string
}

export function makeSmallDisk(): SmallDisk {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-disk-')))
  const [image, path] = [join(directory, 'disk'), join(directory, 'mnt')]
  mkdirSync(path)
  execFileSync('truncate', ['-s', '900M', image])
  execFileSync('mkfs.ext4', ['-q', '-F', '-m0', image])
  execFileSync('mount', ['-o', 'loop', image, path])
  return {
    directory,
    path,
    [Symbol.dispose]() {
      for (const mount of mountsBelow(directory).toSorted().toReversed()) {
        spawnSync('fsfreeze', ['-u', mount], { stdio: 'ignore' })
        spawnSync('umount', ['--lazy', mount])
      }
      for (const loop of loopsBelow(directory)) spawnSync('losetup', ['-d', loop])
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
