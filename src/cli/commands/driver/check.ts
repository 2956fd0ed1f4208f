// `hawser driver check`: who is behind a CSI socket, what can it do, and what is wrong with it?
import { buildCommand } from '@stricli/core'
import { createSystemClock } from '../../../clock/system-clock.ts'
import { CsiError, statusText } from '../../../csi/codes.ts'
import type { Context } from '../../context.ts'
import type { DriverReport } from '../../../lab/driver-report.ts'
import { inspectDriver } from '../../../lab/driver-report.ts'
import { exitCodes } from '../../exit-codes.ts'
import type { OutputForm } from '../../output.ts'
import { json, outputFlag, paint, table, yaml } from '../../output.ts'
import { isUnanswered, openSocket } from './socket.ts'

export const check = buildCommand<{ readonly output: OutputForm }, [string], Context>({
  docs: {
    brief: 'Check a CSI driver for problems',
    fullDescription: [
      'Only reads; creates nothing. Exit code: 3 there is no socket, 4 problems found, 5 the driver does not answer.',
      '',
      'Examples:',
      '  hawser driver check /run/csi/csi.sock',
      '  hawser driver check unix:///run/csi/csi.sock -o json',
    ].join('\n'),
  },
  parameters: {
    flags: { output: outputFlag },
    aliases: { o: 'output' },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, placeholder: 'SOCKET', brief: 'Unix socket of the driver' }],
    },
  },
  async func({ output }, socket) {
    using channel = openSocket(socket)
    const signal = new AbortController().signal
    let report: DriverReport
    try {
      report = await inspectDriver({ transport: channel.transport, clock: createSystemClock() }, signal)
    } catch (error) {
      if (!(error instanceof CsiError)) throw error
      this.note(`hawser: ${socket} does not answer as a CSI driver: ${statusText(error)}`)
      return this.fail(isUnanswered(error) ? exitCodes.unreachable : exitCodes.waiting)
    }
    if (report.problems.length > 0) this.fail(exitCodes.waiting)
    if (output === 'json') return this.print(json(report))
    if (output === 'yaml') return this.print(yaml(report))
    if (output === 'name') return this.print(report.name)
    this.print(table([], rows(report)))
    for (const remark of report.remarks) this.print(`${paint(this, 'yellow', 'note')}      ${remark}`)
    for (const problem of report.problems) this.print(`${paint(this, 'red', 'problem')}   ${problem}`)
    if (report.problems.length === 0) this.print(`${paint(this, 'green', 'ok')}        no problems found`)
  },
})

function rows(report: DriverReport): string[][] {
  const topology = Object.entries(report.topology ?? {}).map(([key, value]) => `${key}=${value}`)
  const unlimited = report.maxVolumes === '0' ? 'no limit' : report.maxVolumes
  return [
    ['name', report.name],
    ['version', report.version],
    ['ready', report.ready ? 'yes' : 'no'],
    ['plugin', report.plugin.join(', ') || 'none'],
    ['controller', report.controller.join(', ') || 'none'],
    ['node', report.node.join(', ') || 'none'],
    ...(report.nodeId === undefined ? [] : [['node id', report.nodeId]]),
    ...(unlimited === undefined ? [] : [['volumes per node', unlimited]]),
    ...(topology.length === 0 ? [] : [['topology', topology.join(', ')]]),
  ]
}
