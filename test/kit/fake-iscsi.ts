// A stand-in for open-iscsi and the kernel's sysfs and udev trees: it keeps what iscsiadm is told, and shows a disk when a
// session's host is scanned. It runs on the model host; there is no iSCSI hardware on our machines.

import { dirname, join } from 'node:path/posix'
import type { Command, CommandResult, Host } from '../../src/host/host.ts'
import type { ModelDisk } from '../../src/host/model/disks.ts'
import type { ModelHost } from '../../src/host/model/model-host.ts'
import { signal } from './plugin-fixture.ts'

const ok: CommandResult = { exitCode: 0, stdout: '', stderr: '' }

export class FakeIscsi {
  /** Every call of iscsiadm, its words joined. */
  readonly calls: string[] = []
  readonly sessions = new Map<string, number>()
  readonly #interfaces = new Map<string, string>()
  /** What an adapter of its own puts before the name of its disks. */
  prefix = ''
  readonly #host: ModelHost
  readonly #disk: ModelDisk
  readonly #iqn: string
  #nextHost = 3
  #nextDisk = 'a'

  constructor(host: ModelHost, disk: ModelDisk, iqn: string) {
    this.#host = host
    this.#disk = disk
    this.#iqn = iqn
    host.programs.set('iscsiadm', (command) => this.#run(command))
  }

  async #run({ argv }: Command): Promise<CommandResult> {
    const words = argv.slice(1)
    this.calls.push(words.join(' '))
    const after = (flag: string): string => words[words.indexOf(flag) + 1] ?? ''
    const portal = after('-p')
    const place = portal.replace(':', ',')
    if (words.includes('discoverydb') && words.includes('new')) await this.#record(`send_targets/${place}/st_config`)
    if (words.includes('--discover')) await this.#record(`nodes/${this.#iqn}/${place},1/${after('-I')}`)
    if (words.includes('--login')) await this.#login(portal, after('-I'))
    if (words.includes('--logout')) {
      // A session belongs to the interface it was made with; by another name nothing is found.
      if (!this.sessions.has(portal) || this.#interfaces.get(portal) !== after('-I')) return { ...ok, exitCode: 21 }
      await this.#logout(portal)
    }
    if (words.includes('show'))
      return {
        ...ok,
        stdout:
          '# BEGIN RECORD\niface.iscsi_ifacename = default\niface.transport_name = tcp\niface.ipaddress = <empty>\n# END RECORD\n',
      }
    return ok
  }

  /** What open-iscsi keeps of a discovery or a target. */
  async #record(name: string): Promise<void> {
    const path = `/etc/iscsi/${name}`
    const { files } = this.#host.quiet
    await files.mkdirAll(dirname(path), 0o700, signal)
    await files.writeFile(path, '# BEGIN RECORD 2.1.8\nnode.startup = manual\n# END RECORD\n', { mode: 0o600 }, signal)
  }

  async #login(portal: string, face: string): Promise<void> {
    const { files } = this.#host.quiet
    const number = this.#nextHost++
    this.sessions.set(portal, number)
    this.#interfaces.set(portal, face)
    const device = `/sys/class/iscsi_host/host${number}/device`
    const session = `${device}/session${number}`
    const write = async (path: string, text: string) => {
      await files.mkdirAll(dirname(path), 0o755, signal)
      await files.writeFile(path, text, { mode: 0o644 }, signal)
    }
    const [address = '', port = ''] = portal.split(':')
    await write(`${session}/iscsi_session/session${number}/targetname`, `${this.#iqn}\n`)
    await write(`${session}/iscsi_session/session${number}/ifacename`, `${face}\n`)
    const connection = `${session}/connection${number}:0/iscsi_connection/connection${number}:0`
    await write(`${connection}/address`, `${address}\n`)
    await write(`${connection}/port`, `${port}\n`)
    await write(`/sys/class/scsi_host/host${number}/scan`, '')
    using _watch = await files.watch(`/sys/class/scsi_host/host${number}`, () => undefined, signal)
    await this.#show(portal)
  }

  /** udev's link and the disk behind it; a real kernel does this when `scan` is written. */
  async #show(portal: string): Promise<void> {
    const { files } = this.#host.quiet
    const name = `sd${this.#nextDisk}`
    this.#nextDisk = String.fromCharCode(this.#nextDisk.charCodeAt(0) + 1)
    this.#host.addDisk(`/dev/${name}`, this.#disk)
    await files.mkdirAll('/dev/disk/by-path', 0o755, signal)
    await files.symlink(`../../${name}`, this.linkOf(portal), signal)
    await files.mkdirAll(`/sys/block/${name}/device`, 0o755, signal)
    await files.writeFile(`/sys/block/${name}/device/delete`, '', { mode: 0o200 }, signal)
  }

  async #logout(portal: string): Promise<void> {
    const { files } = this.#host.quiet
    const number = this.sessions.get(portal)
    this.sessions.delete(portal)
    await files.removeTree(`/sys/class/iscsi_host/host${number}`, signal)
    await files.removeTree(`/sys/class/scsi_host/host${number}`, signal)
    const link = this.linkOf(portal)
    if (!(await files.exists(link, signal))) return
    const disk = await files.realpath(link, signal)
    await files.unlink(link, signal)
    this.#host.removeDisk(disk)
    await files.removeTree(join('/sys/block', disk.slice('/dev/'.length)), signal)
  }

  linkOf(portal: string): string {
    return `/dev/disk/by-path/${this.prefix}ip-${portal}-iscsi-${this.#iqn}-lun-0`
  }
}

/** A Fibre Channel disk as udev shows it, and the trees that releasing it writes to. */
export async function showFcDisk(host: ModelHost, disk: ModelDisk, wwn: string, lun: number): Promise<void> {
  const { files }: Pick<Host, 'files'> = host
  host.addDisk('/dev/sdq', disk)
  for (const path of ['/dev/disk/by-path', '/dev/disk/by-id', '/sys/class/scsi_host/host0', '/sys/block/sdq/device'])
    await files.mkdirAll(path, 0o755, signal)
  await files.symlink('../../sdq', `/dev/disk/by-path/pci-0000:41:00.0-fc-0x${wwn}-lun-${lun}`, signal)
  await files.symlink('../../sdq', '/dev/disk/by-id/scsi-3600508b400105e21', signal)
  await files.writeFile('/sys/class/scsi_host/host0/scan', '', { mode: 0o200 }, signal)
  await files.writeFile('/sys/block/sdq/device/delete', '', { mode: 0o200 }, signal)
}
