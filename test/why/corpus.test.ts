// Is `why` right? Every breakage of the corpus is made on a whole cluster, asked about, mended, and asked about again.
import { test } from 'node:test'
import type { Case } from './corpus/case.ts'
import { driverCases } from './corpus/driver-cases.ts'
import { play } from './corpus/play.ts'

const cases: readonly Case[] = [...driverCases]
const only = process.env['CASE']

for (const each of cases.filter(({ id }) => only === undefined || id.includes(only)))
  test(`${each.id}: ${each.cause}`, () => play(each))
